package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// stuck takes nothing before it is let go.
type stuck struct {
	free chan struct{}
	mu   sync.Mutex
	got  bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.free
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

func (s *stuck) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

// Whatever nobody reads is dropped at the limits, and told once somebody does.
func TestDrainDropsAtItsLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		line string
		most int
	}{
		{"lines", "x\n", drainLines},
		{"bytes", strings.Repeat("x", 1<<10-1) + "\n", drainBytes >> 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stuck{free: make(chan struct{})}
				d := newDrain(s)
				start := time.Now()
				for range c.most + 3 {
					if n, err := d.Write([]byte(c.line)); n != len(c.line) || err != nil {
						t.Fatal(n, err)
					}
				}
				if time.Since(start) != 0 {
					t.Errorf("a caller waited %v", time.Since(start))
				}
				close(s.free)
				synctest.Wait()
				const warning = "hutch: warning: 3 lines were dropped: nobody read them in time\n"
				if got := s.String(); got != strings.Repeat(c.line, c.most)+warning {
					t.Errorf("%d lines, the last %q", strings.Count(got, "\n"), got[max(len(got)-100, 0):])
				}
				must(t, errOf(d.Write([]byte("after\n"))))
				d.close()
				if got := s.String(); !strings.HasSuffix(got, warning+"after\n") {
					t.Errorf("the end is %q", got[max(len(got)-100, 0):])
				}
			})
		})
	}
}

func errOf(_ int, err error) error { return err }

func TestDrainIsFlushedAtTheEndWithinABound(t *testing.T) {
	defer goleak.VerifyNone(t)
	var b bytes.Buffer
	d := newDrain(&b)
	for i := range 100 {
		fmt.Fprintln(d, i)
	}
	d.close()
	if got := strings.Count(b.String(), "\n"); got != 100 {
		t.Errorf("%d lines", got)
	}
	fmt.Fprintln(d, "too late")
	d.close() // again
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{free: make(chan struct{})}
		d := newDrain(s)
		fmt.Fprintln(d, "stuck")
		start := time.Now()
		if d.close(); time.Since(start) != drainFlush {
			t.Errorf("closed after %v", time.Since(start))
		}
		close(s.free)
	})
}

func TestDrainOutlivesAWriterThatPanics(t *testing.T) {
	d := newDrain(broken{})
	for range 2 * drainLines {
		fmt.Fprintln(d, "lost")
	}
	d.close()
	if d.bytes != 0 || d.lines != 0 {
		t.Errorf("%d bytes, %d lines are waiting", d.bytes, d.lines)
	}
}

// The error of a command that goes on for long is written once, by it.
func TestSpokenErrorsAreNotRepeated(t *testing.T) {
	var b strings.Builder
	if code := report(&b, errors.Join(errSpoken, usagef("no").withHint("yes"))); code != exitUsage || b.Len() > 0 {
		t.Errorf("%d, %q", code, b.String())
	}
}
