//go:build !linux

package worker

// confine leaves hard limits to the parent, which kills a worker that it sees
// over its memory.
func confine(head loadHead) error {
	tune(head)
	return nil
}

// closeInherited does nothing: there is no portable way to tell what our own
// parents left open from what the Go runtime needs.
func closeInherited() error { return nil }
