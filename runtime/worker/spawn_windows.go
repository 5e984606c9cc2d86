package worker

import (
	"os"
	"syscall"
)

func selfCommand() (string, error) { return os.Executable() }

// childDir is the parent's own: there is no root that every volume has. exec
// adds SYSTEMROOT to the empty environment by itself.
const childDir = ""

func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
