//go:build !unix

package reload

import (
	"io/fs"
	"os"
)

const openFlags = os.O_RDONLY

// syncFolder does nothing: a folder cannot be synced here, and a rename is
// durable when the file system says so.
func syncFolder(string) error { return nil }

// exposure cannot tell here: access is in lists that the mode does not show.
func exposure(fs.FileInfo) string { return "" }
