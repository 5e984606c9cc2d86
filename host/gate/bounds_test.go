package gate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hutch-run/hutch/host/capability"
)

// plenty is counters without end.
type plenty struct{}

func (plenty) Count(_ context.Context, _ string, addCalls, addBytes, _, _ int64) (int64, int64, bool, error) {
	return addCalls, addBytes, true, nil
}

// However many modules and rules there are, so much is kept of them, and of the
// limiters those that still say something.
func TestWhatIsKeptIsBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	clock := func() time.Time { return now }
	q := quotas{store: plenty{}, now: clock, kept: map[string]*allowance{}}
	r := rates{now: clock, kept: map[rateKey]*limiter{}}
	once := capability.HTTPRule{Host: "a.example", Rate: capability.Rate{N: 1, Per: time.Hour}}
	for i := range 2*maxQuotas + 1 {
		module := fmt.Sprint(i)
		if _, refusal := q.take(t.Context(), module, calls, 1, 1, 1000); refusal != nil {
			t.Fatal(refusal)
		}
		if _, ok := r.take(module, once); !ok {
			t.Fatalf("module %d is at its limit", i)
		}
	}
	if len(q.kept) > maxQuotas || len(r.kept) > maxRates {
		t.Errorf("kept: %d quotas, %d rates", len(q.kept), len(r.kept))
	}
	if _, ok := r.take(fmt.Sprint(2*maxQuotas), once); ok {
		t.Error("the last one starts anew")
	}
	now = now.Add(time.Hour)
	often := capability.HTTPRule{Host: "a.example", Rate: capability.Rate{N: 1, Per: 24 * time.Hour}}
	r.take("slow", often)
	for range 3 {
		now = now.Add(time.Hour)
		for i := range maxRates / 2 {
			r.take(fmt.Sprint("late", now, i), once)
		}
	}
	if _, ok := r.take("slow", often); ok {
		t.Error("one at its limit made room, though others were full")
	}
}
