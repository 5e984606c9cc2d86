// Package gate is the one door out of the sandbox: check, meter, audit, serve.
//
// A [Gate] gives each call of a tool a function that serves the gated operations
// of its guest. An operation passes, in this order: the audit, which is told of it
// whatever becomes of it; the end of the call, after which nothing is done any
// more; the budgets of the call; the grant; and the service behind it. What is
// refused is a value that the guest can read.
//
// A Gate may be used from any goroutine, and so may what it gives a call. It
// starts no goroutine that outlives an operation.
package gate

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/host/kv"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/host/trackerproxy"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// Options say what is behind the door. Operations without their service are
// refused.
type Options struct {
	// Fetch makes HTTP requests, with what Secrets puts into them; both are needed.
	Fetch   *fetch.Client
	Secrets *secrets.Vault
	// KV keeps values, as [kv.Service] does.
	KV Values
	// Tracker asks the tracker, as [trackerproxy.Proxy] does.
	Tracker Tracker
	// Counters hold what was used of daily quotas. Without them a module that has
	// a quota gets nothing that counts.
	Counters Counters
	// Audit is told of every operation. Default: nobody is.
	Audit Audit
	// MaxHTTP is how many HTTP requests one call may make. Default 20.
	MaxHTTP int64
	// Now is the clock of quotas and rates. Default: time.Now.
	Now func() time.Time
	// Logger gets what a guest must not know. Default: nothing is logged.
	Logger *slog.Logger
}

// Values keeps what modules keep.
type Values interface {
	Serve(ctx context.Context, a kv.Access, r abi.Request) abi.Response
}

// Tracker asks a tracker in the name of a caller.
type Tracker interface {
	Serve(ctx context.Context, a trackerproxy.Access, r abi.Request) abi.Response
}

// Gate is the door. It is made by [New].
type Gate struct {
	o      Options
	quotas quotas
	rates  rates
}

// New returns a gate.
func New(o Options) *Gate {
	o.MaxHTTP = cmp.Or(o.MaxHTTP, 20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Audit == nil {
		o.Audit = nobody{}
	}
	return &Gate{
		o:      o,
		quotas: quotas{store: o.Counters, now: o.Now, logger: o.Logger, kept: map[string]*allowance{}},
		rates:  rates{now: o.Now, kept: map[rateKey]*limiter{}},
	}
}

// Admit counts one call of a module against what its policy allows in a day. It is
// asked once for each call, before anything runs.
func (g *Gate) Admit(ctx context.Context, m tool.Module, e capability.Effective) *capability.Refusal {
	most := e.Limits().CallsPerDay
	if most == 0 {
		return nil
	}
	_, refusal := g.quotas.take(ctx, m.Name, calls, 1, 1, most)
	return refusal
}

// Call gives a call of a tool of m, which is named as published, what it may use:
// a host for its gated operations and what it reads with config_get. The caller
// closes it when the call has ended; operations that run end then, and later ones
// are refused.
func (g *Gate) Call(c tool.Caller, m tool.Module, toolName string, e capability.Effective) (host abi.Host, config map[string]string, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &call{gate: g, caller: c, module: m, tool: toolName, granted: e, ended: ctx}
	s.most = int64(cmp.Or(e.Limits().Call.HostCalls, abi.Limits{}.WithDefaults().HostCalls))
	serve := s.audited(s.living(s.metered(s.checked(s.served))))
	host = func(ctx context.Context, r abi.Request) abi.Response { return serve(ctx, r, &Record{}) }
	return host, e.Config(), cancel
}
