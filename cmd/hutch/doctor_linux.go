package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// leastFiles is how many open files are few: each worker takes five, each
// connection one.
const leastFiles = 1024

// checkPlatform reports what the kernel offers for confining workers, and how
// many files may be open.
func checkPlatform(context.Context, patient) []finding {
	return []finding{landlock(), seccomp(), openFiles()}
}

// landlock asks for the version of the interface: landlock_create_ruleset(2)
// without attributes and with the flag LANDLOCK_CREATE_RULESET_VERSION.
func landlock() finding {
	const createRuleset, askVersion = 444, 1 // one number on every architecture Go has
	version, _, failed := syscall.Syscall(createRuleset, 0, 0, askVersion)
	if failed != 0 {
		return finding{"landlock", verdictWarn, "not available: " + failed.Error(), "add landlock to the kernel's lsm= parameter"}
	}
	return finding{"landlock", verdictOK, fmt.Sprintf("interface version %d; not used by this version of hutch yet", version), ""}
}

func seccomp() finding {
	body, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err != nil || !strings.Contains(string(body), "kill_process") {
		return finding{"seccomp", verdictWarn, "filters are not available in this kernel", ""}
	}
	return finding{"seccomp", verdictOK, "available; not used by this version of hutch yet", ""}
}

func openFiles() finding {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return finding{"open files", verdictWarn, err.Error(), ""}
	}
	f := finding{"open files", verdictOK, fmt.Sprintf("at most %d", limit.Cur), ""}
	if limit.Cur < leastFiles {
		f.Status, f.Do = verdictWarn, fmt.Sprintf("ulimit -n %d", leastFiles)
	}
	return f
}
