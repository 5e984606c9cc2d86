// Package registry maps tool names to live versions: admit, list, call, swap,
// drain.
//
// What is published at any moment is one immutable snapshot behind an atomic
// pointer. List, Modules and the lookup of a Call read it and wait for nobody;
// a Call keeps to the version it found, however often the snapshot is swapped
// meanwhile.
//
// Apply, Offer, Retry and Refresh say what is wanted, one after the other under
// applying, and none waits for modules that another one has read: the latest set
// is published as far as it is known, and takes over what is still to be
// admitted. That happens in at most two goroutines at a time, under a context
// that Close ends and whose end it waits for; they, and a timer between them,
// build the next snapshots and swap them in. A Call can swap too, when it finds
// that a module does not describe itself as its manifest says, and Reconsider,
// when the policy changed. All build under
// mu, so snapshots follow each other in one order.
//
// A digest is in use while a file of the snapshot or a running call is; both
// are counted under usesMu. The last one to let go retires its worker. Files
// with identical bytes share a digest, so removing one does not disturb the
// other.
//
// Each subscriber has a goroutine that runs its function; it is told through a
// channel of one place, so changes in quick succession become one telling, and
// a slow subscriber holds up nobody. Close ends these goroutines. It leaves the
// workers alone: they belong to whoever made them.
//
// A worker's death is told by whoever noticed it, through Died, which may publish
// under mu like a Call does. The quarantine has a lock of its own, taken last.
package registry
