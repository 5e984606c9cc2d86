package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// onlyProcess is the one worker of p.
func onlyProcess(t *testing.T, p *Pool) *process {
	t.Helper()
	all := p.processes()
	if len(all) != 1 {
		t.Fatalf("%d workers, want one", len(all))
	}
	return all[0]
}

// A soil is a way to leave a guest as no call should find it.
type soil struct {
	tool   string
	limits abi.Limits
	leave  bool      // its caller leaves once it says a line
	class  abi.Class // how it ends; "" if it answers
}

// in makes the call, and returns its answer if it has one, once the worker is done.
func (s soil) in(t *testing.T, p *Pool, m Module) string {
	t.Helper()
	answer := s.call(t, p, m)
	waitUntil(t, func() bool { return pending(p) == 0 })
	return answer
}

func (s soil) call(t *testing.T, p *Pool, m Module) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := tool(s.tool, `{}`)
	in.Limits = s.limits
	if s.leave {
		in.Log = func(abi.LogLevel, string) { cancel() }
	}
	body, _, err := p.Call(ctx, m, in)
	if s.class != "" {
		wantClass(t, err, s.class, "")
	} else if err != nil {
		t.Fatalf("%s: %v", s.tool, err)
	}
	return string(body)
}

// E16: whatever a call did in a jailed worker, and however it ended, the next one in
// the same process finds what the first one found. The worker learns from the system
// which pages were written, and compares nothing.
func TestE16_CallsLeaveNothingInAWorker(t *testing.T) {
	short := abi.Limits{Wall: 200 * time.Millisecond}
	built := asModule("scribbler.wasm", scribbler())
	for name, guest := range map[string]struct {
		module Module
		soils  []soil
	}{
		"built": {built, []soil{
			{tool: "fill"}, {tool: "grow"},
			{tool: "trap", class: abi.ClassTrap},
			{tool: "deep", class: abi.ClassLimit},
			{tool: "loop", leave: true, class: abi.ClassCancelled},
			{tool: "loop", limits: short, class: abi.ClassTimeout},
			{tool: "loop", limits: abi.Limits{Fuel: 1 << 20}, class: abi.ClassLimit},
		}},
		"Go": {goGuest(t, "testdata/untidy"), []soil{
			{tool: "fill"}, {tool: "grow"},
			{tool: "panic", class: abi.ClassTrap},
			{tool: "ruin", class: abi.ClassTrap},
			{tool: "loop", leave: true, class: abi.ClassCancelled},
			{tool: "loop", limits: short, class: abi.ClassTimeout},
			{tool: "loop", limits: abi.Limits{Fuel: 1 << 20}, class: abi.ClassLimit},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			// One call at a time, so that the next one gets what the last one had.
			p := newReal(t, Options{Calls: 1, Grace: 10 * time.Second})
			if _, err := p.Describe(t.Context(), guest.module); err != nil {
				t.Fatal(err)
			}
			check := soil{tool: "check"}
			want := check.in(t, p, guest.module)
			worker := onlyProcess(t, p)
			for i, s := range guest.soils {
				for range 2 { // on an instance that was brought back, and on one that was made from the image
					if found := s.in(t, p, guest.module); s.class == "" && found == want {
						t.Errorf("%s %d: it changed nothing", s.tool, i)
					}
					if got := check.in(t, p, guest.module); got != want {
						t.Errorf("after %s %d: %q, want %q", s.tool, i, got, want)
					}
				}
			}
			if why := p.Anew(guest.module.Digest); why != "" {
				t.Errorf("calls start anew: %s", why)
			}
			if onlyProcess(t, p) != worker || p.Stats().Starts != 1 {
				t.Errorf("stats %+v, want the one worker alive", p.Stats())
			}
			if err := p.Close(); err != nil { // then all that it said is there
				t.Fatal(err)
			}
			if said := worker.child.said(); strings.Contains(said, "compared") {
				t.Errorf("the worker says %q", said)
			}
		})
	}
}

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
