package llm

import (
	"testing"
	"time"
)

// TestWaitsAreSpread: those who were turned away together do not come back together,
// and nobody comes earlier than asked.
func TestWaitsAreSpread(t *testing.T) {
	for name, tt := range map[string]struct {
		f         failure
		n         int
		least, by time.Duration
	}{
		"first":          {failure{}, 1, 250 * time.Millisecond, 500 * time.Millisecond},
		"third":          {failure{}, 3, time.Second, 2 * time.Second},
		"hundredth":      {failure{}, 100, 30 * time.Second, time.Minute},
		"asked":          {failure{asked: 10 * time.Second}, 1, 10 * time.Second, 11 * time.Second},
		"asked for most": {failure{asked: 58 * time.Second}, 1, 58 * time.Second, time.Minute},
	} {
		seen := map[time.Duration]bool{}
		for range 200 {
			wait := tt.f.wait(tt.n)
			if seen[wait] = true; wait < tt.least || wait > tt.by {
				t.Fatalf("%s: %v, want %v to %v", name, wait, tt.least, tt.by)
			}
		}
		if len(seen) < 20 {
			t.Errorf("%s: %d different waits of 200", name, len(seen))
		}
	}
}
