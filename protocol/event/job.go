package event

import "time"

// Job is work that a change causes, to be done later: whoever keeps the change keeps
// its jobs with it, or neither.
type Job struct {
	// Kind says who does it.
	Kind string
	// Key says what it is about. While a job waits, another of its kind and key is the
	// same one.
	Key     string
	Payload []byte
	// NotBefore is when it may be done; zero is at once.
	NotBefore time.Time
}
