package worker

import "syscall"

// selfCommand is this program's file, even after it was replaced on disk.
func selfCommand() (string, error) { return "/proc/self/exe", nil }

const childDir = "/"

// childAttr makes the kernel kill a worker whose parent died without a word: a
// guest that spins may keep its process from noticing the closed pipe.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
