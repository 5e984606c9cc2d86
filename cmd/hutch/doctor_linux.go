package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/hutch-run/hutch/runtime/worker"
)

// leastFiles is how many open files are few: each worker takes five, each
// connection one.
const leastFiles = 1024

// checkPlatform reports what confines workers here, and how many files may be
// open.
func checkPlatform(ctx context.Context, who patient) []finding {
	return append(checkJail(ctx, who), openFiles())
}

// checkJail starts a worker and asks it.
func checkJail(ctx context.Context, who patient) []finding {
	jail, err := askForJail(ctx, who)
	if err != nil {
		return []finding{{"jail", verdictFail, err.Error(), hintOf(err)}}
	}
	var out []finding
	for _, f := range jail.Features {
		found := finding{"jail", verdictOK, f.String(), ""}
		if !f.Held {
			found.Status, found.Do = verdictWarn, jailHints[f.Name]
		}
		out = append(out, found)
	}
	return out
}

func askForJail(ctx context.Context, who patient) (_ worker.Jail, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	who.cfg.RequireJail = false // what there is shall be shown
	bench, err := openWorkbench(who.cfg, who.p)
	if err != nil {
		return worker.Jail{}, err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	return bench.pool.Jail(ctx)
}

// jailHints say how to get what is missing.
var jailHints = map[string]string{
	worker.JailOOMScore: "make /proc readable to hutch",
	worker.JailFiles:    "use Linux 5.13 or later, with landlock among the kernel's lsm= parameter",
	worker.JailCalls:    "use Linux 5.7 or later on amd64 or arm64, where hutch may set seccomp filters",
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
