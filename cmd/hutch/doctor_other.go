//go:build !linux

package main

import (
	"context"
	"runtime"
)

// checkPlatform says what is missing here, so that nobody counts on it.
func checkPlatform(context.Context, patient) []finding {
	return []finding{{"confinement", verdictWarn,
		runtime.GOOS + ": workers are processes of their own, without a jail: no Landlock, no seccomp, and the memory limit is hutch looking now and then",
		"run modules you do not trust on Linux"}}
}
