//go:build !linux

package reload

import (
	"io/fs"
	"time"
)

// changedAt is when a file's bytes last changed, as far as it is said here.
func changedAt(fi fs.FileInfo) time.Time { return fi.ModTime() }
