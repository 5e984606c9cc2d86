package dialect

import (
	"context"
	"errors"
	"sync"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// Calls begin in the state that a module is in once it has started: initialised, and
// for a [Hutch] guest described as well, so that what it does at first is done. A
// [V1] guest could keep what it was given to write its description to, which ends
// with the call, so it is only initialised.
//
// All of this happens without capability, input and configuration. A module that
// asks for any of them meanwhile starts anew for each call, because it would have
// been answered otherwise. So does one that no checkpoint covers.

// starting is the state in which a guest's calls begin, once it is known whether
// there is one.
type starting struct {
	mu      sync.Mutex
	kept    *sandbox.Checkpoint
	anew    string // why each call starts anew; empty while that is not known
	working bool   // somebody finds out
}

// Anew says why each call of a module starts anew and not in a state that was kept,
// as far as its bytes tell; it is empty if they say nothing of the kind.
func Anew(m *wasmbin.Module) string {
	rewritten, err := m.Rewrite(wasmbin.Rewriting{})
	if err != nil {
		return "" // then it does not run at all
	}
	return sandbox.Uncovered(rewritten)
}

// Anew says why each call starts the module anew, once a call has shown that it does;
// it is empty if calls begin in a state that was kept.
func (g *Guest) Anew() string {
	g.starting.mu.Lock()
	defer g.starting.mu.Unlock()
	return g.starting.anew
}

// started is an instance that a call has.
type started interface {
	Call(ctx context.Context, export string, args ...uint64) ([]uint64, error)
	Fuel() int64
	Close(ctx context.Context) error
}

// instance returns one that is initialised, for one call.
func (g *Guest) instance(ctx context.Context, c *call) (started, error) {
	config := sandbox.Config{State: c, Line: c.printed, LineBytes: c.limits.LogLineBytes, Fuel: c.limits.Fuel}
	if !c.limits.Fresh && g.kind != JS {
		if kept := g.checkpoint(ctx); kept != nil {
			return kept.Instance(ctx, config)
		}
	}
	in, err := g.module.Instantiate(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := g.initialize(ctx, in); err != nil {
		c.fuel = in.Fuel()
		return nil, either(err, in.Close(ctx))
	}
	return in, nil
}

// initialize gets a reactor going.
func (g *Guest) initialize(ctx context.Context, in *sandbox.Instance) error {
	for _, name := range initializers {
		if g.module.Exports(name) {
			_, err := in.Call(ctx, name)
			return err
		}
	}
	return nil
}

// checkpoint returns the state that calls begin in, which the first call makes; nil
// if there is none, or not yet.
func (g *Guest) checkpoint(ctx context.Context) *sandbox.Checkpoint {
	s := &g.starting
	s.mu.Lock()
	if s.kept != nil || s.anew != "" || s.working {
		defer s.mu.Unlock()
		return s.kept
	}
	s.working = true
	s.mu.Unlock()

	kept, err := g.start(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working, s.kept = false, kept
	var not *sandbox.NotCovered
	switch {
	case err == nil, ended(ctx) != nil: // the next call tries again
	case errors.As(err, &not):
		s.anew = not.Reason
		g.logger.Info("each call starts anew", "why", not.Reason)
	default: // the call will find that out for itself, with what it was given
		s.anew = "it does not start without what a call is given"
	}
	return kept
}

// start brings an instance to where calls begin, and keeps that.
func (g *Guest) start(ctx context.Context) (*sandbox.Checkpoint, error) {
	limits := g.limits
	limits.OutputBytes = MaxDescriptionBytes
	bare := func() sandbox.Config {
		c := newCall(0, nil, abi.Invocation{Limits: limits})
		return sandbox.Config{State: c, Fuel: limits.Fuel}
	}
	return g.module.Checkpoint(ctx, max(g.calls, 1), bare, func(ctx context.Context, in *sandbox.Instance) error {
		c := in.State().(*call) // bare made it
		if err := g.initialize(ctx, in); err != nil {
			return err
		}
		if c.asked {
			return &sandbox.NotCovered{Reason: "it asks for what belongs to a call while it starts"}
		}
		if g.kind != Hutch {
			return nil
		}
		before := in.MemoryBytes()
		if _, err := in.Call(ctx, "describe"); err != nil {
			return err
		}
		if c.personal {
			return &sandbox.NotCovered{Reason: "it asks for configuration or the host while it describes itself"}
		}
		if after := in.MemoryBytes(); after > before && after > uint64(limits.MemoryBytes)/2 {
			return &sandbox.NotCovered{Reason: "it takes more than half of its memory to describe itself"}
		}
		return nil
	})
}
