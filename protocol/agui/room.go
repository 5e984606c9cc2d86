package agui

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/hutch-run/hutch/protocol/event"
)

// A Room is how many streams may be open at once, of all servers that share it. Some of it
// is kept for runs: streams that only watch, and may do so for days, cannot take it all.
type Room struct {
	streams, watching int

	mu            sync.Mutex // guards what follows
	open, watched int
}

// NewRoom returns one for so many streams, of which so many may be of clients that watch a
// thread.
func NewRoom(streams, watching int) *Room { return &Room{streams: streams, watching: watching} }

// take takes a place, which leave gives back, or says why there is none.
func (r *Room) take(watches bool) (leave func(), full *refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.open >= r.streams:
		return nil, crowded(fmt.Sprintf("%d streams are open, at most %d: close one or try again later", r.open, r.streams))
	case watches && r.watched >= r.watching:
		return nil, crowded(fmt.Sprintf("%d streams watch threads, at most %d: close one or try again later", r.watched, r.watching))
	}
	one := 0
	if watches {
		one = 1
	}
	r.open, r.watched = r.open+1, r.watched+one
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.open, r.watched = r.open-1, r.watched-one
	}, nil
}

// crowded refuses a stream, and the connection that it came over: kept for the next
// request, as many of those would be in the way as streams.
func crowded(message string) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, retry: true, hangUp: true, Code: event.CodeBusy, Message: message}
}
