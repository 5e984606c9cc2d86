//go:build !unix

package secrets

import (
	"io/fs"
	"os"
)

// fileID is in no portable information about a file.
type fileID struct{}

func idOf(fs.FileInfo) fileID { return fileID{} }

// tryLock does nothing: folders cannot be locked here. Two writers at the same
// moment can lose one's change.
func tryLock(*os.File) (bool, error) { return true, nil }

// syncFolder does nothing: a rename is durable when the file system says so.
func syncFolder(string) error { return nil }
