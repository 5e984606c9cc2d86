// Package board is the embedded tracker: tasks, steps, messages, members, and the rules
// between them.
//
// Each change is one step of its [Store]: what the rules look at, what they decide, the log
// of it and the events that it causes are kept together or not at all. Events wait in the
// queue of each agent until that agent has acknowledged them, across restarts of either.
//
// A [Board] may be used from any goroutine. It starts none: [Board.Run] is the caller's, and
// does what time does: members go offline, events and answers grow old.
package board
