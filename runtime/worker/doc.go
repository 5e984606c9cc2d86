// Package worker puts a sandbox into a process of its own and speaks to it over
// a pipe: a module that kills its process, or has to be killed, takes only its
// own worker along.
//
// # The two sides
//
// [Main] is the worker: it loads one module and runs its calls. [Pool] is the
// parent: it keeps one worker for each digest in use. Both speak frames (see
// frame.go) over the worker's standard input and output. The parent trusts
// nothing a worker says: lengths, ids, operations and budgets are checked before
// they cost anything, and a worker that breaks the protocol is killed.
//
// # Who may touch what, on the parent's side
//
//   - A [Pool] owns slots, one a digest. Pool.mu guards the map of them.
//   - A slot owns at most one process and at most one start in flight, so that
//     concurrent first calls share it. slot.mu guards both. Locks are taken in
//     the order Pool.mu, slot.mu, process.mu, call.mu, and those of group and
//     counters last; no callback of a caller runs under any but call.mu.
//   - A process has two goroutines. The writer alone writes to the pipe, so a
//     worker that stopped reading blocks nobody else. The reader alone reads,
//     answers pending calls, runs the callbacks Log and Progress, and at the end
//     reaps the child and settles what is left. A gated operation runs in a
//     goroutine of its own, one at a time for each call.
//   - A call is settled once, by the reader or, if it was never sent, by its
//     caller. Its caller may leave earlier; then the call stays in the process's
//     table until the worker answers (a late answer, counted) or is killed.
//   - One goroutine, locked to its thread, starts all children, because Linux
//     ties a child's death signal to the thread that made it. One goroutine, the
//     sweeper, measures memory and ends idle workers.
//
// [Pool.Close] ends everything and waits for all of these.
//
// # The worker's side
//
// One goroutine reads and never writes; each call runs in its own and writes its
// frames under one mutex. So a worker always drains its input, and the two sides
// cannot wait for each other.
//
// Before it looks at its module a worker puts on the first layer of its jail
// (enter), and the second (seal) before it answers the load; no code of a module
// runs before that answer. Neither comes off again. What is in force stands in the
// answer, and [Pool.Jail] hands it on. The module's folder in the cache is the one
// thing a worker sees of the file system, and the parent alone moves it to its place.
package worker
