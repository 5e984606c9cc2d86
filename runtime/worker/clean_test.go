package worker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Calls that run out of fuel, or answer more than they may, leave the next one what it
// would find otherwise: a Go guest answers the same as one that starts anew each time.
func TestKeptAndFreshAgree(t *testing.T) {
	for _, name := range []string{"rawguest", "pdkecho"} {
		t.Run(name, func(t *testing.T) {
			p := newReal(t, Options{Calls: 1})
			m := goGuest(t, "../dialect/testdata/"+name)
			answer := func(in abi.Invocation) (string, int64) {
				body, usage, err := p.Call(t.Context(), m, in)
				if usage.Anew != "" {
					t.Fatalf("it starts anew: %s", usage.Anew)
				}
				return fmt.Sprintf("%s, %v", body, err), usage.Fuel
			}
			random := rand.New(rand.NewPCG(1, 2))
			for i := range 60 {
				in := tool("echo", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", random.IntN(1<<random.IntN(19)))))
				limited := in
				switch i % 3 {
				case 1:
					limited.Limits.Fuel = 1 + random.Int64N(20_000)
				case 2:
					limited.Limits.OutputBytes = 10
				}
				_, _ = answer(limited) // whatever comes of it
				fresh := in
				fresh.Limits.Fresh = true
				got, kept := answer(in)
				want, anew := answer(fresh)
				if got != want {
					t.Fatalf("call %d: %.200q, anew %.200q", i, got, want)
				}
				if kept >= anew {
					t.Fatalf("call %d burned %d, and %d with a start of its own", i, kept, anew)
				}
			}
			if s := p.Stats(); s.Starts != 1 {
				t.Errorf("stats %+v, want one worker", s)
			}
		})
	}
}
