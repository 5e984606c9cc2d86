// Package store keeps everything durable in SQL: the values that modules keep,
// what people decided, which versions are pinned, what was used of quotas, threads, the
// tracker's board, the inboxes of agents, and who may come in.
//
// A change is durable when Update returns nil: it was synced to the disk. One
// goroutine, the committer, owns the one connection that writes. Changes that
// arrive while it syncs are committed together next time, each in a savepoint of
// its own: one that fails is undone, and the others are kept. The function given
// to Update runs in the goroutine of its caller, while the committer waits for
// it; so a panic is the caller's, and a function that takes long holds up
// everyone. It must not call Update or View.
//
// View reads a snapshot on a connection of its own, beside the writer. A second
// goroutine removes what has expired. Close waits for both goroutines and for the
// functions that run.
//
// A database belongs to one process: who opens it holds a lock beside its file, or one of
// its server.
//
// The database is a file of SQLite or one on a server of PostgreSQL, with the same
// statements. On a server a connection may break while the database lives on: the
// committer and the readers each make a new one when they next need it. The lock is that
// of the connection that writes.
package store
