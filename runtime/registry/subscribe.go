package registry

import (
	"log/slog"
	"runtime/debug"
	"sync"
)

// subscribers are told that something changed, never what: they look.
type subscribers struct {
	logger *slog.Logger
	mu     sync.Mutex
	closed bool
	all    map[*subscriber]struct{}
}

type subscriber struct {
	told   func()
	wake   chan struct{} // one place: told again while busy is told once
	ended  chan struct{}
	ending sync.Once
}

func (s *subscribers) add(told func()) (stop func()) {
	sub := &subscriber{told: told, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return func() {}
	}
	if s.all == nil {
		s.all = map[*subscriber]struct{}{}
	}
	s.all[sub] = struct{}{}
	go sub.run(s.logger)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, sub)
		sub.end()
	}
}

func (s *subscribers) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.all {
		select {
		case sub.wake <- struct{}{}:
		default: // it has not looked since the last time
		}
	}
}

func (s *subscribers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for sub := range s.all {
		sub.end()
	}
	s.all = nil
}

func (sub *subscriber) end() { sub.ending.Do(func() { close(sub.ended) }) }

func (sub *subscriber) run(logger *slog.Logger) {
	for {
		select {
		case <-sub.ended:
			return
		case <-sub.wake:
		}
		select {
		case <-sub.ended:
			return
		default:
			sub.call(logger)
		}
	}
}

// call keeps a subscriber's panic from ending the process.
func (sub *subscriber) call(logger *slog.Logger) {
	defer func() {
		if p := recover(); p != nil {
			logger.Error("a subscriber of the tool list panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	sub.told()
}
