package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"github.com/hutch-run/hutch/runtime/sandbox"
)

// asProbe makes the test program a process that puts on a jail, or a part of one,
// and tries something. It has to be the program without the race detector.
const asProbe = "__probe"

// probeMain takes the jail, the attempt and the test's folder. It ends with 0 if
// the attempt succeeded, else with 1 and the error on standard output.
func probeMain(args []string) int {
	here := probeAt{dir: args[2], parent: os.Getppid()}
	// Before the jail. Where there is none to be read, nothing connects to it.
	text, _ := os.ReadFile(filepath.Join(here.dir, "port"))
	here.port = string(text)
	put, try := probeJails[args[0]], attempts[args[1]]
	if err := put(here); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := try(here); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// probeAt is what there is to be tried at.
type probeAt struct {
	dir, port string
	parent    int
}

func (p probeAt) cache() string   { return filepath.Join(p.dir, "cache") }
func (p probeAt) entry() string   { return filepath.Join(p.cache(), "entry") }
func (p probeAt) outside() string { return filepath.Join(p.dir, "outside") }
func (p probeAt) socket() string  { return filepath.Join(p.dir, "socket") }
func (p probeAt) head(readOnly bool) loadHead {
	return loadHead{CacheDir: p.cache(), CacheReadOnly: readOnly, Calls: 4, MemoryBytes: 1 << 30}
}

// probeJails are the whole jail as a worker puts it on, and each wall alone.
var probeJails = map[string]func(probeAt) error{
	"none":       func(probeAt) error { return nil },
	"first":      func(p probeAt) error { return errors.Join(confine(p.head(false)), held(enter(p.head(false), nil))) },
	"first, hit": func(p probeAt) error { return errors.Join(confine(p.head(true)), held(enter(p.head(true), nil))) },
	"both": func(p probeAt) error {
		err := confine(p.head(false))
		pages, opened := sandbox.OpenPages(1 << 20)
		j := enter(p.head(false), pages)
		j.seal(pages)
		return errors.Join(err, opened, held(j), j.Err())
	},
	"landlock":      func(p probeAt) error { return wall(onlyFolder(p.head(false))) },
	"landlock, hit": func(p probeAt) error { return wall(onlyFolder(p.head(true))) },
	"landlock, running": func(p probeAt) error {
		return errors.Join(wall(onlyFolder(p.head(false))), restrictFiles())
	},
	"seccomp":          func(probeAt) error { return filterCalls(compileFilter(nil)) },
	"seccomp, running": func(probeAt) error { return filterCalls(runFilter(nil)) },
	"limits":           func(p probeAt) error { return limitFiles(p.head(true)) },
	"closed":           func(probeAt) error { return limit(syscall.RLIMIT_NOFILE, 0) },
	"not dumpable":     func(probeAt) error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) },
	// A kernel that has no Landlock, and a worker that does not know.
	"worker without landlock": func(probeAt) error {
		if err := withoutLandlock(); err != nil {
			return err
		}
		os.Exit(Main())
		return nil
	},
	// A worker as it would be without any jail.
	"worker without jail": func(probeAt) error {
		if err := run(loadUnjailed(slog.New(slog.DiscardHandler)), slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		os.Exit(0)
		return nil
	},
}

func wall(_ string, err error) error { return err }

// held returns an error for what is not in force.
func held(j Jail) error {
	for _, f := range j.Features {
		if !f.Held {
			return errors.New(f.String())
		}
	}
	return nil
}

func withoutLandlock() error {
	noSuchCall := seccomp.ActionErrno&^0xffff | seccomp.Action(syscall.ENOSYS)
	return filterCalls(seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls:      []seccomp.SyscallGroup{{Names: []string{"landlock_create_ruleset"}, Action: noSuchCall}},
	}, nil)
}

// attempts are what code that broke out of the engine would like to do. With a
// name of "run" it is what a worker has to be able to do.
var attempts = map[string]func(probeAt) error{
	"nothing":              func(probeAt) error { return nil },
	"read a file":          func(probeAt) error { return readable("/etc/passwd") },
	"read the cache":       func(p probeAt) error { return readable(p.entry()) },
	"list a folder":        func(probeAt) error { return listable("/") },
	"write the cache":      func(p probeAt) error { return os.WriteFile(filepath.Join(p.cache(), "new"), nil, 0o600) },
	"write outside":        func(p probeAt) error { return os.WriteFile(p.outside(), nil, 0o600) },
	"remove outside":       func(p probeAt) error { return os.Remove(filepath.Join(p.dir, "port")) },
	"link outside":         func(p probeAt) error { return os.Link(p.entry(), p.outside()) },
	"look at a file":       func(probeAt) error { _, err := os.Stat("/etc/passwd"); return err },
	"parent's memory file": func(p probeAt) error { return readable(fmt.Sprintf("/proc/%d/mem", p.parent)) },
	"parent's environment": func(p probeAt) error { return readable(fmt.Sprintf("/proc/%d/environ", p.parent)) },

	"tcp socket":       func(probeAt) error { return socket(unix.AF_INET, unix.SOCK_STREAM) },
	"udp socket":       func(probeAt) error { return socket(unix.AF_INET, unix.SOCK_DGRAM) },
	"unix socket":      func(probeAt) error { return socket(unix.AF_UNIX, unix.SOCK_STREAM) },
	"netlink socket":   func(probeAt) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW) },
	"socket pair":      func(probeAt) error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
	"connect":          func(p probeAt) error { return dial("tcp", "127.0.0.1:"+p.port) },
	"listen":           func(probeAt) error { return listen() },
	"connect abstract": func(p probeAt) error { return dial("unix", "@"+p.socket()) },

	"exec":          func(probeAt) error { return syscall.Exec("/bin/true", []string{"true"}, nil) },
	"fork":          func(probeAt) error { return fork(uintptr(unix.SIGCHLD)) },
	"vfork":         func(probeAt) error { return fork(uintptr(unix.SIGCHLD) | unix.CLONE_VFORK) },
	"new namespace": func(probeAt) error { return unix.Unshare(unix.CLONE_FS) },

	"trace the parent": func(p probeAt) error {
		_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(p.parent), 0, 0, 0, 0)
		return errno(e)
	},
	"read the parent's memory": func(p probeAt) error { return readParent(p.parent) },
	"signal the parent":        func(p probeAt) error { return unix.Kill(p.parent, 0) },
	"signal the parent's thread": func(p probeAt) error {
		return unix.Tgkill(p.parent, p.parent, 0)
	},
	"raise a limit": func(probeAt) error {
		return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 40, Max: 1 << 40})
	},
	"limit the parent": func(p probeAt) error {
		var old unix.Rlimit
		return unix.Prlimit(p.parent, unix.RLIMIT_CORE, nil, &old)
	},

	"executable mapping": func(probeAt) error { return mapped(unix.PROT_READ | unix.PROT_EXEC) },
	"make executable":    func(probeAt) error { return protected(unix.PROT_READ | unix.PROT_EXEC) },
	"open many files":    func(probeAt) error { return openMany(maxOpenFiles) },
	"read at an offset":  func(probeAt) error { _, err := unix.Pread(0, make([]byte, 1), 0); return err },
	"copy a descriptor":  func(probeAt) error { _, err := unix.Dup(0); return err },
	"write to a file":    func(p probeAt) error { return grow(p) },
	"file in memory":     func(probeAt) error { _, err := unix.MemfdCreate("probe", 0); return err },

	"bpf":          func(probeAt) error { return rawCall(unix.SYS_BPF, 0, 0, 0) },
	"io_uring":     func(probeAt) error { return rawCall(unix.SYS_IO_URING_SETUP, 0, 0, 0) },
	"keyctl":       func(probeAt) error { return rawCall(unix.SYS_KEYCTL, 0, 0, 0) },
	"userfaultfd":  func(probeAt) error { return rawCall(unix.SYS_USERFAULTFD, 0, 0, 0) },
	"perf":         func(probeAt) error { return rawCall(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0) },
	"mount":        func(probeAt) error { return unix.Mount("none", "/nowhere", "tmpfs", 0, "") },
	"chroot":       func(probeAt) error { return unix.Chroot("/nowhere") },
	"setuid":       func(probeAt) error { return rawCall(unix.SYS_SETUID, uintptr(os.Getuid()), 0, 0) },
	"old handle":   func(probeAt) error { return rawCall(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0) },
	"personality":  func(probeAt) error { return rawCall(unix.SYS_PERSONALITY, 0xffffffff, 0, 0) },
	"32 bit calls": func(probeAt) error { return rawCall(0x40000000+unix.SYS_GETPID, 0, 0, 0) },

	"run, all at once": func(probeAt) error { return work() },
	"be closed to look into": func(probeAt) error {
		on, _, e := unix.Syscall(unix.SYS_PRCTL, unix.PR_GET_DUMPABLE, 0, 0)
		if e == 0 && on != 0 {
			return errors.New("dumpable")
		}
		return errno(e)
	},
}

// errno is an error unless it is 0.
func errno(e syscall.Errno) error {
	if e != 0 {
		return e
	}
	return nil
}

func rawCall(number uintptr, a, b, c uintptr) error {
	_, _, e := unix.Syscall(number, a, b, c)
	return errno(e)
}

func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

func listable(path string) error {
	_, err := os.ReadDir(path)
	return err
}

func socket(domain, kind int) error {
	_, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
	return err
}

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	return c.Close()
}

// listen uses plain TCP: what Go itself prefers, MPTCP, is not Landlock's.
func listen() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
}

// fork makes a process that ends at once.
func fork(flags uintptr) error {
	runtime.LockOSThread()
	pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	if e == 0 && pid == 0 {
		for {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
	}
	return errno(e)
}

// readParent reads a byte of the parent's memory, where the same program has its
// own code. That there is nothing to be read would be no refusal.
func readParent(parent int) error {
	var b [1]byte
	at := uintptr(unsafe.Pointer(unsafe.StringData(asProbe)))
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	_, err := unix.ProcessVMReadv(parent, local, []unix.RemoteIovec{{Base: at, Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

func mapped(protection int) error {
	_, err := unix.Mmap(-1, 0, os.Getpagesize(), protection, unix.MAP_ANON|unix.MAP_PRIVATE)
	return err
}

func protected(protection int) error {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	return unix.Mprotect(page, protection)
}

func openMany(n int) error {
	for range n {
		if _, err := unix.Dup(0); err != nil {
			return err
		}
	}
	return nil
}

func grow(p probeAt) error {
	f, err := os.OpenFile(p.entry(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("more"))
	return errors.Join(err, f.Close())
}

// work does what guests make a worker do: threads, timers, memory, collections.
func work() error {
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			runtime.LockOSThread() // ends its thread with it, so that new ones start
			time.Sleep(time.Millisecond)
			keep := make([][]byte, 0, 64)
			for range 64 {
				keep = append(keep, make([]byte, 1<<16))
			}
			runtime.GC()
			runtime.KeepAlive(keep)
		})
	}
	all.Wait()
	return mapped(unix.PROT_READ | unix.PROT_WRITE)
}

// attemptNames are sorted, so that each can be a subtest.
func attemptNames() []string {
	var names []string
	for name := range attempts {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
