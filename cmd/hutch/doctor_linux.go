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

// landlock asks the list of active security modules: the system call that
// reports Landlock's own version is for whoever uses it.
func landlock() finding {
	body, err := os.ReadFile("/sys/kernel/security/lsm")
	switch {
	case err != nil:
		return finding{"landlock", verdictWarn, "unknown: the list of security modules cannot be read", ""}
	case !strings.Contains(","+strings.TrimSpace(string(body))+",", ",landlock,"):
		return finding{"landlock", verdictWarn, "not active in this kernel", "add landlock to the kernel's lsm= parameter"}
	}
	return finding{"landlock", verdictOK, "active; not used by this version yet", ""}
}

func seccomp() finding {
	body, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err != nil || !strings.Contains(string(body), "kill_process") {
		return finding{"seccomp", verdictWarn, "filters are not available in this kernel", ""}
	}
	return finding{"seccomp", verdictOK, "available; not used by this version yet", ""}
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
