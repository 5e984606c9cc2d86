package worker

import (
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"github.com/hutch-run/hutch/runtime/sandbox"
)

// The system calls of a worker. Whatever is on no list ends the process with
// SIGSYS, which its parent takes for what it is: nothing of ours would try.

// runningCalls are what the Go runtime needs to schedule, collect and tell the
// time, and the pipes to be read and written.
var runningCalls = [...]string{
	"read", "write", "close", "futex", "epoll_pwait", "epoll_ctl",
	"nanosleep", "clock_gettime", "sched_yield", "madvise", "munmap", "getrandom", "getpid", "gettid",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall",
	"exit", "exit_group",
}

// compilingCalls are needed besides to read and fill the cache folder, and to
// lock the door after that.
var compilingCalls = [...]string{
	"mmap", "mprotect", // machine code
	"openat", "newfstatat", "fstat", "getdents64", "fcntl", "getuid",
	"mkdirat", "unlinkat", "renameat", "fsync",
	"landlock_create_ruleset", "landlock_restrict_self", "seccomp",
}

// threadFlags are exactly those that the Go runtime starts a thread with. Without
// CLONE_THREAD it would be a process.
const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND |
	unix.CLONE_SYSVSEM | unix.CLONE_THREAD

// compileFilter is the filter while a module is compiled. It stays when there is a
// second one, so it has to allow what that does.
func compileFilter(pages *sandbox.Pages) (seccomp.Policy, error) {
	conditions := append(readingOf(pages),
		whose("clone", 0, seccomp.Equal, threadFlags),
		whose("clone", 0, seccomp.Equal, threadFlags|unix.CLONE_SETTLS), // as on amd64
		whose("tgkill", 0, seccomp.Equal, uint64(os.Getpid())),
		whose("prlimit64", 0, seccomp.Equal, 0), // of this process
		whose("prctl", 0, seccomp.Equal, unix.PR_SET_VMA),
		whose("prctl", 0, seccomp.Equal, unix.PR_SET_NO_NEW_PRIVS),
	)
	return allowing(slices.Concat(runningCalls[:], compilingCalls[:]), conditions...)
}

// runFilter is the filter while code of a module runs.
func runFilter(pages *sandbox.Pages) (seccomp.Policy, error) {
	conditions := append(readingOf(pages),
		whose("clone", 0, seccomp.Equal, threadFlags),
		whose("clone", 0, seccomp.Equal, threadFlags|unix.CLONE_SETTLS), // as on amd64
		whose("tgkill", 0, seccomp.Equal, uint64(os.Getpid())),          // how the scheduler interrupts a thread
		whose("mmap", 2, seccomp.BitsNotSet, unix.PROT_EXEC),
		whose("mprotect", 2, seccomp.BitsNotSet, unix.PROT_EXEC),
		whose("prctl", 0, seccomp.Equal, unix.PR_SET_VMA), // the runtime names its mappings
	)
	return allowing(runningCalls[:], conditions...)
}

// readingOf allows the one descriptor to be read at an offset that says which pages a
// call changed.
func readingOf(pages *sandbox.Pages) []seccomp.NameWithConditions {
	if pages == nil {
		return nil
	}
	return []seccomp.NameWithConditions{whose("pread64", 0, seccomp.Equal, uint64(pages.Descriptor()))}
}

// whose allows a call if an argument is as it should be.
func whose(call string, argument uint32, is seccomp.Operation, value uint64) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: call, Conditions: seccomp.ArgumentConditions{
		{Argument: argument, Operation: is, Value: value},
	}}
}

// allowing is a policy of these calls and no others. Calls numbered for another
// architecture are not allowed either.
func allowing(names []string, conditions ...seccomp.NameWithConditions) (seccomp.Policy, error) {
	if !slices.Contains(filteredArchitectures[:], runtime.GOARCH) {
		return seccomp.Policy{}, fmt.Errorf("no list of system calls for %s", runtime.GOARCH)
	}
	names = namedFor(runtime.GOARCH, names)
	return seccomp.Policy{
		DefaultAction: seccomp.ActionKillProcess,
		Syscalls:      []seccomp.SyscallGroup{{Names: names, NamesWithCondtions: conditions, Action: seccomp.ActionAllow}},
	}, nil
}

// filteredArchitectures are those that the lists are right for, by their Go names.
var filteredArchitectures = [...]string{"amd64", "arm64"}

// namedFor returns names as the library calls them on an architecture: one of
// them has two.
func namedFor(goarch string, names []string) []string {
	names = slices.Clone(names)
	if i := slices.Index(names, "newfstatat"); i >= 0 && goarch == "arm64" {
		names[i] = "fstatat"
	}
	return names
}
