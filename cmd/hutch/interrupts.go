package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interrupts has an interrupt, as Ctrl-C sends it, end a part of a command instead of the
// whole. A nil one has all end the whole.
type interrupts struct {
	mu   sync.Mutex
	part context.CancelFunc // nil if none is to be ended
}

// notify returns a context that ends with the first signal that ends the command. stop
// gives back what signals do by default.
func (i *interrupts) notify(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	launch(func() error { return i.listen(ctx, signals, cancel) })
	return ctx, func() { signal.Stop(signals); cancel() }
}

// listen returns when ctx ends.
func (i *interrupts) listen(ctx context.Context, signals <-chan os.Signal, end context.CancelFunc) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-signals:
			if s != os.Interrupt || !i.endPart() {
				end()
			}
		}
	}
}

// endPart reports whether there was a part to end. It ends once: who interrupts again
// wants more.
func (i *interrupts) endPart() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.part == nil {
		return false
	}
	i.part()
	i.part = nil
	return true
}

// during returns the context of a part of a command, which an interrupt ends until stop
// is called.
func (i *interrupts) during(ctx context.Context) (part context.Context, stop func()) {
	part, cancel := context.WithCancel(ctx)
	if i == nil {
		return part, cancel
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.part = cancel
	return part, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.part = nil
		cancel()
	}
}
