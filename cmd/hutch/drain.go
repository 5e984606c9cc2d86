package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
)

const (
	// drainBytes and drainLines are how much may wait for a slow reader.
	drainBytes = 256 << 10
	drainLines = 1000
	// drainFlush is how long a command that ends waits for one.
	drainFlush = time.Second
)

// drain is a writer that makes nobody wait. What it is given a goroutine of its own
// writes to w, in order; what comes while too much is waiting is dropped, and how
// much that was is said once there is room again.
//
// The goroutine ends with close, or, if w takes nothing then, never: a write to a
// full pipe cannot be called back. The lock is held for moments, not while writing.
type drain struct {
	w    io.Writer
	work chan struct{} // has room for one: look at waiting
	idle chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	waiting [][]byte
	bytes   int // in waiting and in what is being written
	lines   int // likewise
	dropped int // lines, not yet told
	closed  bool
}

func newDrain(w io.Writer) *drain {
	d := &drain{w: w, work: make(chan struct{}, 1), idle: make(chan struct{})}
	go d.run()
	return d
}

// Write takes a copy of p, or drops it. It never fails and never waits.
func (d *drain) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := bytes.Count(p, []byte{'\n'})
	if d.closed || d.bytes+len(p) > drainBytes || d.lines+lines > drainLines {
		d.dropped += lines
		return len(p), nil
	}
	d.waiting = append(d.waiting, bytes.Clone(p))
	d.bytes += len(p)
	d.lines += lines
	d.wake()
	return len(p), nil
}

// wake needs the lock, so that it does not meet close.
func (d *drain) wake() {
	select {
	case d.work <- struct{}{}:
	default: // it is about to look anyway
	}
}

// run is the goroutine. A writer that panics loses what it was given.
func (d *drain) run() {
	defer close(d.idle)
	for range d.work {
		for d.writeSome() {
		}
	}
	for d.writeSome() { // what came before close
	}
}

// writeSome writes what is waiting and reports whether there was anything.
func (d *drain) writeSome() bool {
	d.mu.Lock()
	batch := d.waiting
	if d.waiting = nil; len(batch) == 0 && d.dropped > 0 {
		batch = [][]byte{fmt.Appendf(nil, "hutch: warning: %d lines were dropped: nobody read them in time\n", d.dropped)}
		d.dropped = 0
		d.bytes += len(batch[0])
		d.lines++
	}
	d.mu.Unlock()
	for _, p := range batch {
		d.writeOne(p)
	}
	return len(batch) > 0
}

func (d *drain) writeOne(p []byte) {
	defer func() {
		_ = recover() // there is nowhere left to say it
		d.mu.Lock()
		defer d.mu.Unlock()
		d.bytes -= len(p)
		d.lines -= bytes.Count(p, []byte{'\n'})
	}()
	_, _ = d.w.Write(p) // nor that standard error is closed
}

// close waits for what was written, at most [drainFlush]. What comes later is
// dropped.
func (d *drain) close() {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.work)
	}
	d.mu.Unlock()
	timer := time.NewTimer(drainFlush)
	defer timer.Stop()
	select {
	case <-d.idle:
	case <-timer.C:
	}
}

// attended runs a command that goes on for long. Nobody may be reading what it
// says, so neither that nor its error at the end ever holds it up.
func attended(c *cli.Context, p program, run func(*cli.Context, program, *voice) error) error {
	d := newDrain(c.App.ErrWriter)
	defer d.close()
	err := <-launch(func() error { return run(c, p, &voice{w: d}) })
	if err == nil {
		return nil
	}
	report(d, err)
	return errors.Join(errSpoken, err)
}
