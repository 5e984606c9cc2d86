//go:build !unix

package sandbox

import "context"

// withMemory leaves the instance's memory to Go's heap.
func (in *Instance) withMemory(ctx context.Context) context.Context { return ctx }
