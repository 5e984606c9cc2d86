//go:build !unix

package plainfile

import "os"

const openFlags = os.O_RDONLY

// noFollow has no equal here: that the file opened is the one seen has to do.
const noFollow = 0

// syncFolder does nothing: a folder cannot be synced here, and a rename is
// durable when the file system says so.
func syncFolder(string) error { return nil }
