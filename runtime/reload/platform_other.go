//go:build !unix

package reload

import "io/fs"

// exposure cannot tell here: access is in lists that the mode does not show.
func exposure(fs.FileInfo) string { return "" }
