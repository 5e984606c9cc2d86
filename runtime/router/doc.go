// Package router decides which conversation a tracker event belongs to, and whether it
// becomes a turn there.
//
// One table says of every event whether it is for a prompt or internal ([Decide]). An event
// that is for a prompt becomes an item of the agent's inbox, which is durable before the
// event is acknowledged: from then on the tracker may forget it. An item that is about a
// task waits until the task can be worked on, has one turn, and ends as done, failed or
// dropped, each with its reason. Every step is kept before what follows from it is done.
//
// # Who does what
//
// A [Router] is for one agent. [Router.Accept] and [Router.Connected] may be called from any
// goroutine; they write to the store and wake others, and ask the tracker nothing.
// [Router.Run] has these goroutines, and returns when all of them have ended:
//
//   - its own, which looks for items whose turn it is;
//   - one for each task that is worked on, at most as many as [Options.Parallel]. It looks at
//     the task, has the turn, and tells the tracker what came of it;
//   - one that compares the inbox with the tracker's tasks, takes free ones if the agent may,
//     pays what is owed to the tracker, and removes what is old.
//
// Items of one task follow each other in the order in which they were accepted, never two at
// once; items of different tasks have no order. What is live, the open items by task, is one
// struct with a lock that nobody holds while the store, the tracker or a turn is waited for.
// Whoever made the store closes it, after Run has returned.
//
// # What may come twice
//
// An event that comes again finds its item and changes nothing, before and after a restart.
// Several items that wait for the same task become one turn. An item that was running when
// the program died runs once more in the same conversation, under another run id, and its
// prompt says so; after a second time it has failed.
package router
