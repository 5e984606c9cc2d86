// Package session keeps threads: their history, their state, one run at a time, live
// streams.
//
// A [Keeper] runs what it is given, a [Runner], for a thread, and keeps what comes of
// it in a [Store]. It knows nothing of models or tools.
//
// # Who does what
//
// Each run has one goroutine, which alone writes to its thread: no two runs of a
// thread are ever begun at once, they begin in the order in which they were submitted,
// and those of all threads in that order too as far as the limits let them. Another
// goroutine removes what is too old. Close ends all of them and waits.
//
// What is live of a thread, its window, the unfinished end of its events and its
// streams, is one struct with a lock that nobody holds while something is read or
// written. Publishing never waits for a listener.
//
// # What is durable, and when
//
// A turn costs these commits: one when it begins (the thread if it is new, the user's
// messages, the run), one for each [Run.Commit] (a model's step with the results of
// its tools) and one when it ends (the last step with it). So an answer without tools
// costs two, one with two rounds of tools four. A run that has to wait costs one more,
// and so does, seldom, what trims a thread that has become too large.
//
// Deltas are not durable. They go to the streams at once; what is kept is the whole
// message, as one start, one content, one end, in the order in which messages ended.
// Results of tools and the last event of a run go out after they are durable, never
// before. An event that is durable has a number, by which a stream can be taken up
// again; what has none yet is sent again from its start.
//
// After a crash every run that had begun or waited is failed, with the code
// interrupted, when the store is opened again. Nothing is run twice.
//
// # What a model sees, and what is removed
//
// A model sees a window: the last messages of the thread, bounded in number and in
// bytes, beginning with a message of a user where there is one. Each call in it has
// its one result right behind it: what lacks one gets one that says so, and what
// answers nothing is left out.
//
// A thread with more messages or bytes than it may have loses its oldest turns, until
// it has nine tenths of that; of events likewise, whole runs at a time. A principal
// with more threads than it may have loses those that were used least lately, of which
// no run waits or runs. Threads go after a time without use, and what is
// known of a run as long after its end; its events go earlier.
package session
