//go:build !unix

package sandbox

import "io/fs"

// checkOwner accepts every file: owner and mode say nothing here, and a new
// folder has the rights of the one it is in.
func checkOwner(string, fs.FileInfo, int) error { return nil }
