package registry

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/worker"
)

// hangers are modules that hang in describe, one after the other.
func (w *world) hangers(n int) (all []tool.Candidate) {
	for i := range n {
		all = append(all, w.offers(fmt.Sprintf("a-hang%02d.wasm", i), "1", fmt.Sprintf("hang%02d", i)))
	}
	return all
}

// hangingWorkers describe a module whose digest is among those that hang once a
// value is received, or fail when the call ends.
type hangingWorkers struct {
	*workers
	hang map[string]bool
	next chan struct{}
}

func (w *world) hang(all []tool.Candidate) hangingWorkers {
	h := hangingWorkers{w.workers, map[string]bool{}, make(chan struct{})}
	for _, c := range all {
		h.hang[c.Digest] = true
	}
	w.o.Workers = h
	return h
}

func (h hangingWorkers) Describe(ctx context.Context, m worker.Module) ([]byte, error) {
	if h.hang[m.Digest] {
		select {
		case <-h.next:
		case <-ctx.Done():
			return nil, abi.Failf(abi.ClassCancelled, "ended")
		}
	}
	return h.workers.Describe(ctx, m)
}

// inBubble runs a test in which time passes when nothing else does.
func inBubble(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		test(w)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Modules that hang in describe hold up neither what goes nor what is known, and
// what comes after them is next in line.
func TestANewerSetDoesNotWaitForAnOlder(t *testing.T) {
	inBubble(t, func(w *world) {
		okay, old := w.offers("okay.wasm", "1", "okay"), w.offers("recurse.wasm", "1", "recurse")
		known := w.offers("recurse.wasm", "2", "recurse2")
		w.apply(okay, known)
		w.apply(okay, old)
		all := w.hangers(40)
		h := w.hang(all)
		first := w.Offer(w.Context(), append([]tool.Candidate{okay, old}, all...))
		synctest.Wait()
		w.lists("okay", "recurse")

		fresh := w.offers("z-fresh.wasm", "1", "fresh")
		second := w.Offer(w.Context(), append([]tool.Candidate{known, fresh}, all...))
		w.lists("recurse2")
		<-first
		h.next <- struct{}{}
		synctest.Wait()
		w.workers.mu.Lock()
		described := slices.Clone(w.workers.described)
		w.workers.mu.Unlock()
		if n := slices.Index(described, "z-fresh.wasm"); n < 0 || n != len(described)-1 || n != 4 {
			t.Errorf("described %q, want the fresh one after the one that was let go", described)
		}

		third := w.Offer(w.Context(), []tool.Candidate{known, fresh})
		w.lists("fresh", "recurse2")
		<-second
		<-third
		for range admissions {
			h.next <- struct{}{}
		}
		synctest.Wait()
		if n := len(w.workers.described) - len(described); n != admissions {
			t.Errorf("%d more described, want only the %d that had begun", n, admissions)
		}
		retired := 0
		for digest := range h.hang {
			retired += w.timesRetired(digest)
		}
		if retired != 1+admissions {
			t.Errorf("%d workers retired, want those of the %d that went after they had begun", retired, 1+admissions)
		}
	})
}

// What two sets wait for is admitted once, and both are over when they should be.
func TestASetTakesOverWhatIsBeingAdmitted(t *testing.T) {
	inBubble(t, func(w *world) {
		all := w.hangers(3)
		h := w.hang(all)
		first := w.Offer(w.Context(), all)
		second := w.Offer(w.Context(), all)
		<-first
		synctest.Wait()
		select {
		case <-second:
			t.Error("over before all is known")
		default:
		}
		close(h.next)
		<-second
		w.lists("hang00", "hang01", "hang02")
		if n := len(w.workers.described); n != 3 {
			t.Errorf("%d descriptions of 3 modules", n)
		}
	})
}

// A release counts while modules hang.
func TestAReleaseDoesNotWaitForAdmissions(t *testing.T) {
	inBubble(t, func(w *world) {
		x := w.offers("x.wasm", "1", "x")
		w.apply(x)
		for range 3 {
			w.Died(worker.Module{Name: x.Name, Digest: x.Digest}, "memory")
		}
		w.lists()
		all := w.hangers(4)
		w.hang(all)
		w.Offer(w.Context(), append(all, x))
		if _, err := Release(w.jail, x.Name); err != nil {
			t.Fatal(err)
		}
		w.Refresh(w.Context())
		w.lists("x")
	})
}

// A name goes to who comes first in the order, however long that takes and
// whatever comes meanwhile; who has
// it till then keeps it over a broken version, and no longer.
func TestNamesDoNotDependOnWhatHangs(t *testing.T) {
	inBubble(t, func(w *world) {
		slow, quick := w.offers("a-slow.wasm", "1", "x"), w.offers("b.wasm", "2", "x")
		h := w.hang([]tool.Candidate{slow})
		w.Offer(w.Context(), []tool.Candidate{slow, quick})
		synctest.Wait()
		broken := w.file("b.wasm", []byte("broken"))
		w.Offer(w.Context(), []tool.Candidate{slow, quick}) // publishes what was known of it
		w.says("b.wasm", tool.Ready, "")
		over := w.Offer(w.Context(), []tool.Candidate{slow, broken})
		synctest.Wait()
		w.says("b.wasm", tool.Ready, "serving the version before")
		w.lists("x")
		close(h.next)
		<-over
		w.says("a-slow.wasm", tool.Ready, "")
		w.says("b.wasm", tool.Rejected, "pre-check")
	})
}

// Close ends admissions and those who wait for them.
func TestCloseEndsAdmissions(t *testing.T) {
	inBubble(t, func(w *world) {
		all := w.hangers(5)
		w.hang(all)
		over := w.Offer(w.Context(), all)
		synctest.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		<-over
		if n := len(w.workers.described); n != 0 {
			t.Errorf("%d described after Close", n)
		}
	})
}

// A round may end, and forget what it did not want, while a newer set is looked up: what
// was known about that set is not lost, or it would be said to load for ever.
func TestARoundThatEndsForgetsNothingOfTheNext(t *testing.T) {
	for _, remembered := range []bool{true, false} { // in this process, or in its cache alone
		t.Run(fmt.Sprint("remembered=", remembered), func(t *testing.T) {
			inBubble(t, func(w *world) {
				okay, known := w.offers("okay.wasm", "1", "okay"), w.offers("known.wasm", "1", "known")
				w.apply(okay, known)
				w.apply(okay)
				hangs := w.hangers(1)
				h := w.hang(hangs)
				var first <-chan struct{}
				looks := 0
				w.o.Pinned = func(c tool.Candidate) string {
					if c.Name != known.Name {
						return ""
					}
					if looks++; looks == 3 { // what is known was looked up, and is not wanted yet
						h.next <- struct{}{}
						<-first
					}
					return ""
				}
				first = w.Offer(w.Context(), append([]tool.Candidate{okay}, hangs...))
				if remembered {
					if _, err := w.Described(known.Digest); err != nil {
						t.Fatal(err)
					}
				}
				<-w.Offer(w.Context(), append([]tool.Candidate{okay, known}, hangs...))
				w.lists("hang00", "known", "okay")
			})
		})
	}
}
