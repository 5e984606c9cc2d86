package worker

import (
	"context"
	"sync"
)

// turnstile lets so many calls of a module in at once and so many wait. Those
// who wait stand in lines, one for each line name, and the lines take turns: a
// caller with a hundred calls waiting delays another's single one by one place.
// Within a line, calls are served in the order they came.
type turnstile struct {
	most, room int // calls inside, calls waiting

	mu      sync.Mutex
	inside  int
	waiting int
	lines   map[string][]*waiter
	order   []string // names of the lines with waiters, the next to be served first
}

// waiter is one call in line. let is closed when it is let in.
type waiter struct{ let chan struct{} }

func newTurnstile(most, room int) *turnstile {
	return &turnstile{most: most, room: room, lines: map[string][]*waiter{}}
}

// enter waits in line until it is let in. It returns full, at once, if there is
// no room to wait, and otherwise false if ctx ended first. Who is in leaves once.
// Who was in already, and lost its place blamelessly, needs no room.
func (t *turnstile) enter(ctx context.Context, line string, again bool) (in, full bool) {
	t.mu.Lock()
	if t.inside < t.most {
		t.inside++
		t.mu.Unlock()
		return true, false
	}
	if t.waiting >= t.room && !again {
		t.mu.Unlock()
		return false, true
	}
	w := &waiter{let: make(chan struct{})}
	if len(t.lines[line]) == 0 {
		t.order = append(t.order, line)
	}
	t.lines[line] = append(t.lines[line], w)
	t.waiting++
	t.mu.Unlock()
	select {
	case <-w.let:
		return true, false
	case <-ctx.Done():
		return t.giveUp(line, w), false
	}
}

// giveUp takes w out of its line and reports whether it was let in meanwhile.
func (t *turnstile) giveUp(line string, w *waiter) (in bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.lines[line] {
		if other == w {
			t.setLine(line, append(t.lines[line][:i:i], t.lines[line][i+1:]...))
			t.waiting--
			return false
		}
	}
	return true
}

// setLine replaces a line, which vanishes when it is empty.
func (t *turnstile) setLine(line string, rest []*waiter) {
	if len(rest) > 0 {
		t.lines[line] = rest
		return
	}
	delete(t.lines, line)
	for i, name := range t.order {
		if name == line {
			t.order = append(t.order[:i:i], t.order[i+1:]...)
			return
		}
	}
}

// leave gives a place back, to the first of the line whose turn it is.
func (t *turnstile) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) == 0 {
		t.inside--
		return
	}
	line := t.order[0]
	next := t.lines[line][0]
	t.order = append(t.order[1:], line) // to the end, then out of it if it is empty
	t.setLine(line, t.lines[line][1:])
	t.waiting--
	close(next.let)
}
