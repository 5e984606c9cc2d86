//go:build cgo

package worker

// withCgo: threads of the C library make system calls that no worker may make, so
// this program cannot be its own worker.
const withCgo = true
