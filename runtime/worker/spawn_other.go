//go:build !linux && !windows

package worker

import (
	"os"
	"syscall"
)

func selfCommand() (string, error) { return os.Executable() }

const childDir = "/"

// childAttr cannot ask for a death signal here: a worker notices the closed pipe,
// unless a guest that spins holds up its process.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
