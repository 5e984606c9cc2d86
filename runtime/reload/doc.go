// Package reload finds modules in folders and hands over what changed.
//
// [Blobs] keeps the bytes of every module seen, named by their SHA-256, so
// that what was hashed is what is loaded, whatever happens to the file.
// [Watcher] says which modules the folders hold, each time that changes.
//
// Goroutines: [Watcher.Run] is one loop and does everything in it: it reads
// notifications, scans, hashes, and calls the function it was given, one call
// after the other. The notifier has a goroutine of its own that only fills a
// channel. A Watcher belongs to whoever runs it; Blobs may be used from any
// goroutine.
package reload
