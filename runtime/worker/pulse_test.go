package worker

import (
	"bufio"
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// deaf is a worker that loads its module and then answers nothing.
func deaf(w *fakeWorker, in io.Reader, out io.Writer) error {
	for range 2 {
		if err := step(in, out, w); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, in)
	return err
}

// A worker that answers no ping is ended within the limit though nobody calls.
func TestFrozenWorkerIsEndedBetweenCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newHostile(t, deaf)
		s, failure := f.slot(numbered(1))
		if failure != nil {
			t.Fatal(failure)
		}
		if _, failure := s.process(t.Context()); failure != nil {
			t.Fatal(failure)
		}
		s.release()
		time.Sleep(5500 * time.Millisecond)
		if n := f.Stats().Ends["frozen"]; n != 0 {
			t.Errorf("%d ended within the limit", n)
		}
		time.Sleep(time.Second)
		if n := f.Stats().Ends["frozen"]; n != 1 {
			t.Errorf("ends %v, want the frozen worker ended", f.Stats().Ends)
		}
	})
}

// Workers that start all the time do not keep the others from being looked at.
func TestManyStartsDoNotHoldUpTheSweeper(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{IdleTTL: 3 * time.Second})
		for n := range 40 {
			if _, err := f.Describe(t.Context(), numbered(n)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(250 * time.Millisecond)
		}
		if s := f.Stats(); s.Ends["idle"] < 20 || s.Workers > 20 {
			t.Errorf("stats %+v, want the idle ones ended meanwhile", s)
		}
	})
}

// A call does not keep one alive, and is run once more.
func TestFrozenWorkerWithACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newHostile(t, deaf)
		in := tool("any", `{}`)
		in.Limits.Wall = 20 * time.Second
		_, _, err := f.Call(t.Context(), numbered(1), in)
		wantClass(t, err, abi.ClassWorkerLost, "")
		if s := f.Stats(); s.Ends["frozen"] != 2 || s.Reruns != 1 {
			t.Errorf("stats %+v, want two ended as frozen", s)
		}
	})
}

// Workers that answer live as long as they are wanted, calls or not.
func TestPingsAreAnswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{IdleTTL: time.Hour})
		if _, err := f.Describe(t.Context(), numbered(1)); err != nil {
			t.Fatal(err)
		}
		stuck := later(f, t.Context(), numbered(2), tool("polite", `{}`))
		time.Sleep(25 * time.Second)
		if s := f.Stats(); s.Workers != 2 || len(s.Ends) != 0 {
			t.Errorf("stats %+v, want both alive", s)
		}
		_, err := stuck()
		wantClass(t, err, abi.ClassTimeout, "")
	})
}

func TestPongsThatNobodyAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newHostile(t, hostile(func(id uint64) []byte { return goodFrame(kindPong, id, "") }))
		_, _, err := f.Call(t.Context(), numbered(1), tool("any", `{}`))
		wantClass(t, err, abi.ClassWorkerLost, "")
		if f.Stats().Ends["protocol"] == 0 {
			t.Errorf("ends %v, want protocol", f.Stats().Ends)
		}
	})
	u := &pulse{}
	first, _ := u.next()
	second, missed := u.next()
	if missed != 1 || !u.answered(second) || u.answered(first) || u.answered(second) {
		t.Errorf("a pong counts once, and for the pings before it: %+v", u)
	}
}

// What the worker's module is to blame for is told; what we or a caller did is not.
func TestDiedTellsWhatAModuleDid(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var died []string
		f := newUsual(t, Options{Died: func(m Module, how string) {
			mu.Lock()
			defer mu.Unlock()
			died = append(died, m.Name+" "+how)
		}})
		call := func(n int, name string, wall time.Duration) {
			in := tool(name, `{}`)
			in.Limits.Wall = wall
			if _, _, err := f.Call(t.Context(), numbered(n), in); err == nil {
				t.Errorf("%s answered", name)
			}
			time.Sleep(time.Second)
		}
		call(1, "crash", 0)
		call(2, "stuck", time.Second)
		call(3, "polite", time.Second)                               // ends by itself in time
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the caller's own
		defer cancel()
		cancelled := later(f, ctx, numbered(4), tool("stuck", `{}`))
		if _, err := cancelled(); err == nil {
			t.Error("stuck call answered")
		}
		time.Sleep(2 * time.Minute) // the rest ends idle
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"m1.wasm crash", "m1.wasm crash", "m2.wasm timeout"}; !slices.Equal(died, want) {
			t.Errorf("told %q, want %q", died, want)
		}
	})
}

// A worker answers pings while its guests run and its module loads.
func TestWorkerAnswersPings(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{})
		c := f.launch(func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) { return &fakeGuest{w, usual}, nil })
		defer c.kill()
		r := bufio.NewReader(c.out)
		if h, err := readFrame(r); err != nil || h.kind != kindHello {
			t.Fatal(h, err)
		}
		for id := range uint64(3) {
			if _, err := c.in.Write(goodFrame(kindPing, id+1, "")); err != nil {
				t.Fatal(err)
			}
			if h, err := readFrame(r); err != nil || h.kind != kindPong || h.id != id+1 {
				t.Fatal(h, err)
			}
		}
	})
}
