package dialect

import (
	"context"
	"errors"

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

// beginning is where a guest's calls begin.
type beginning struct {
	kept *sandbox.Checkpoint // nil: each call starts anew
	at   interpreter         // of JS
	anew string              // why each call starts anew, if need be from the script on
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
	if b := g.begun.Load(); b != nil {
		return b.anew
	}
	return ""
}

// started is an instance that a call has.
type started struct {
	*sandbox.Instance
	at    interpreter // of JS
	close func(context.Context) error
}

// instance returns one that is initialised, for one call.
func (g *Guest) instance(ctx context.Context, c *call) (started, error) {
	config := sandbox.Config{State: c, Line: c.printed, LineBytes: c.limits.LogLineBytes, Fuel: c.limits.Fuel}
	if !c.limits.Fresh {
		if b := g.beginning(ctx); b.kept != nil {
			in, err := b.kept.Instance(ctx, config)
			if err != nil {
				return started{}, err
			}
			return started{in.Instance, b.at, in.Close}, nil
		}
	}
	in, err := g.module.Instantiate(ctx, config)
	if err != nil {
		return started{}, err
	}
	if err := g.initialize(ctx, in); err != nil {
		c.fuel = in.Fuel()
		return started{}, either(err, in.Close(ctx))
	}
	return started{Instance: in, close: in.Close}, nil
}

// initializers are the exports that get a reactor going, in order of
// preference: WASI's own name, and the one that linkers leave when they make
// neither command nor reactor.
var initializers = [...]string{"_initialize", "__wasm_call_ctors"}

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

// beginning returns where calls begin, which the first one finds out; others wait, so
// that all burn the same. It is empty if nobody waits for the answer any more.
func (g *Guest) beginning(ctx context.Context) *beginning {
	if b := g.begun.Load(); b != nil {
		return b
	}
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return &beginning{}
	}
	if b := g.begun.Load(); b != nil {
		return b
	}
	b, err := g.start(ctx, true)
	if err != nil && g.kind == JS { // then calls begin before the script, at least
		if before, failed := g.start(ctx, false); failed == nil {
			b = before
		}
	}
	if err != nil && ended(ctx) != nil {
		return &beginning{} // the next call tries again
	}
	b.anew = whyAnew(err)
	if b.anew != "" {
		g.logger.Info("each call starts anew", "why", b.anew)
	}
	g.begun.Store(b)
	return b
}

// whyAnew is what is said of a module that does not start for all calls. If it is no
// matter of what is covered, a call will find it out for itself, with what it was given.
func whyAnew(err error) string {
	var not *sandbox.NotCovered
	switch {
	case err == nil:
		return ""
	case errors.As(err, &not):
		return not.Reason
	}
	return "it does not start without what a call is given"
}

// start brings an instance to where calls begin, and keeps that. Of a script that is
// before it runs, unless all is true.
func (g *Guest) start(ctx context.Context, all bool) (*beginning, error) {
	b, limits := &beginning{}, g.limits
	limits.OutputBytes = MaxDescriptionBytes
	bare := func() sandbox.Config {
		c := newCall(0, nil, abi.Invocation{Limits: limits})
		return sandbox.Config{State: c, Fuel: limits.Fuel}
	}
	var err error
	b.kept, err = g.module.Checkpoint(ctx, max(g.calls, 1), bare, func(ctx context.Context, in *sandbox.Instance) error {
		c := in.State().(*call) // bare made it
		if err := g.initialize(ctx, in); err != nil {
			return err
		}
		if c.asked {
			return &sandbox.NotCovered{Reason: "it asks for what belongs to a call while it starts"}
		}
		before := in.MemoryBytes()
		var err error
		if b.at, err = g.prepare(ctx, in, c, all); err != nil {
			return err
		}
		if c.personal {
			return &sandbox.NotCovered{Reason: g.whyPersonal()}
		}
		if after := in.MemoryBytes(); after > before && after > uint64(limits.MemoryBytes)/2 {
			return &sandbox.NotCovered{Reason: "it takes more than half of its memory to describe itself"}
		}
		return nil
	})
	return b, err
}

// whyPersonal is what is said of a guest that has asked for what belongs to a call.
func (g *Guest) whyPersonal() string {
	if g.kind == JS {
		return "outside of functions the script logs, draws at random, or asks for configuration or the host"
	}
	return "it asks for configuration or the host while it describes itself"
}

// prepare does what can be done before a call is known.
func (g *Guest) prepare(ctx context.Context, in *sandbox.Instance, c *call, all bool) (at interpreter, err error) {
	switch g.kind {
	case Hutch:
		return interpreter{}, describe(ctx, in)
	case JS:
		e := newEngine(ctx, in, interpreter{})
		if !all {
			err = e.boot(g.script.name)
			return e.interpreter, err
		}
		var status int32
		if status, err = g.script.run(e, c, jsDescribe); status != 0 {
			err = errors.New("the script throws")
		}
		return e.interpreter, err
	}
	return interpreter{}, err
}

// describe has a guest describe itself. One that fails at that, or gets on without the
// memory it wanted, is in a state in which no call would begin anew.
func describe(ctx context.Context, in *sandbox.Instance) error {
	results, err := in.Call(ctx, exportDescribe)
	switch {
	case err != nil:
		return err
	case uint32(first(results)) != 0:
		return &sandbox.NotCovered{Reason: "it fails to describe itself"}
	case in.OverMemory("describes itself") != nil:
		return &sandbox.NotCovered{Reason: "it is refused memory while it describes itself"}
	}
	return nil
}
