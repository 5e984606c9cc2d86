// Package registry maps tool names to live versions: admit, list, call, swap,
// drain.
//
// What is published at any moment is one immutable snapshot behind an atomic
// pointer. List, Modules and the lookup of a Call read it and wait for nobody;
// a Call keeps to the version it found, however often the snapshot is swapped
// meanwhile.
//
// Apply is the one writer of what is wanted: calls of it take turns. It admits
// new modules in at most two goroutines of its own, which end before it
// returns, then builds the next snapshot and swaps it in. A Call can swap too,
// when it finds that a module does not describe itself as its manifest says.
// Both build under mu, so snapshots follow each other in one order.
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
