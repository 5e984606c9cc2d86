package worker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/hutch-run/hutch/runtime/sandbox"
)

const (
	// maxOpenFiles is enough for a cache folder to be read, three levels deep.
	maxOpenFiles = 32
	// maxCacheFile bounds a file in the cache. Compiled code is two to four times
	// the size of its module.
	maxCacheFile = 512 << 20
)

// enter is the jail's first layer: what a worker needs to compile a module into
// its cache folder, and no more. Pages are opened already, or nil. It ends nothing but
// says what is not in force.
func enter(head loadHead, pages *sandbox.Pages) Jail {
	var j Jail
	// What the kernel calls it when memory runs short; without it, it calls it "exe".
	_ = os.WriteFile("/proc/self/comm", []byte("hutch-worker"), 0)
	j.note(JailOOMScore, "1000", os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0))
	j.note(JailLimits, "", limitFiles(head))
	// After this the files in /proc/self are root's.
	j.note(JailNotDumpable, "", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	j.note(JailNoNewPrivs, "", noNewPrivs())
	version, err := onlyFolder(head)
	j.note(JailFiles, version, err)
	j.note(JailCalls, "", filterCalls(compileFilter(pages)))
	return j
}

// seal is the second layer, before any code of the module runs: the pipes are
// what is left, and the table of this process's own pages, to be read.
func (j *Jail) seal(pages *sandbox.Pages) {
	j.note(JailNoFiles, "", restrictFiles())
	j.note(JailNoNewOpenFiles, "", errors.Join(limit(syscall.RLIMIT_FSIZE, 0), limit(syscall.RLIMIT_NOFILE, 0)))
	j.note(JailFewCalls, "", filterCalls(runFilter(pages)))
}

// limitFiles bounds what a worker could fill up. The number of processes has no
// limit here, since threads count as such; the filter has.
func limitFiles(head loadHead) error {
	size := uint64(maxCacheFile)
	if head.CacheDir == "" || head.CacheReadOnly {
		size = 0
	}
	return errors.Join(limit(syscall.RLIMIT_FSIZE, size), limit(syscall.RLIMIT_NOFILE, maxOpenFiles))
}

// limit sets a resource limit that cannot be raised again.
func limit(resource int, most uint64) error {
	if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		return fmt.Errorf("limit %d: %w", resource, err)
	}
	return nil
}

func noNewPrivs() error {
	return landlocksys.AllThreadsPrctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

const (
	readCache  = landlocksys.AccessFSReadFile | landlocksys.AccessFSReadDir
	writeCache = landlocksys.AccessFSWriteFile | landlocksys.AccessFSTruncate |
		landlocksys.AccessFSMakeReg | landlocksys.AccessFSMakeDir |
		landlocksys.AccessFSRemoveFile | landlocksys.AccessFSRemoveDir
)

// onlyFolder leaves the worker its cache folder of all files; sockets and signals
// to others go too where the kernel knows how. It returns the version it found.
func onlyFolder(head loadHead) (version string, err error) {
	n, err := landlocksys.LandlockGetABIVersion()
	if err != nil {
		return "", fmt.Errorf("not available: %w", err)
	}
	version = fmt.Sprintf("interface version %d", n)
	if head.CacheDir != "" {
		access := landlock.AccessFSSet(readCache)
		if !head.CacheReadOnly {
			access |= writeCache
		}
		if err = restrictFiles(landlock.PathAccess(access, head.CacheDir)); err == nil {
			return version, nil
		}
		// The folder may have gone: then the module is compiled without it.
	}
	return version, restrictFiles()
}

// restrictFiles forbids all threads everything that the kernel's Landlock knows,
// but for the rules. The strictest of versions is asked for.
func restrictFiles(rules ...landlock.Rule) error {
	if n, err := landlocksys.LandlockGetABIVersion(); err != nil || n < 1 {
		return fmt.Errorf("not available: %w", err)
	}
	return landlock.V11.BestEffort().Restrict(rules...)
}

// syncOrFail is SECCOMP_FILTER_FLAG_TSYNC_ESRCH: a thread that cannot be brought
// under the filter is an error instead of a number nobody looks at.
const syncOrFail = seccomp.FilterFlag(unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH)

// filterCalls puts all threads, and those to come, under a filter.
func filterCalls(policy seccomp.Policy, err error) error {
	if err != nil {
		return err
	}
	if !seccomp.Supported() {
		return errors.New("not available in this kernel")
	}
	// The filter takes this thread's no_new_privs along to all others.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true, Flag: seccomp.FilterFlagTSync | syncOrFail, Policy: policy,
	})
}

// endedByJail reports whether a process was ended by a filter, given what waiting
// for it returned.
func endedByJail(waited error) bool {
	var exit *exec.ExitError
	if !errors.As(waited, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGSYS
}
