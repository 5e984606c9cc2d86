package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/hutch-run/hutch/cmd/hutch/telemetry"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/agent"
	"github.com/hutch-run/hutch/runtime/session"
)

// Faces of the engine, as policies and receipts see them. A person is behind both.
const (
	faceAGUI = "agui"
	faceChat = "chat"
)

// engine runs agents for people: each has a model, tools of the registry and threads. It
// is the owner's of a state folder, and may be used from any goroutine.
//
// Goroutines are those of its keepers, one for each run.
type engine struct {
	agents map[string]*engineAgent
	names  []string // of agents, the default one first
	// kept keeps threads in the store, passing keeps none.
	kept, passing *session.Keeper
	telemetry     *telemetry.T
	log           *slog.Logger
}

// engineAgent is one agent that is ready to run.
type engineAgent struct {
	cfg    *agentConfig
	agent  *agent.Agent
	keeper *session.Keeper
	tools  profile
	told   *telemetry.T
	close  func()
}

// openEngine builds the agents of a configuration over tools, and ends the runs that the
// process before left in the store of threads.
func openEngine(ctx context.Context, cfg Config, p program, threads session.Store, tools agent.Tools, told *telemetry.T, log *slog.Logger) (_ *engine, err error) {
	e := &engine{agents: map[string]*engineAgent{}, telemetry: told, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	o := cfg.Engine
	o.Logger = log
	for _, a := range cfg.Agents {
		o.RunTime = max(o.RunTime, a.Wall+wallGrace)
	}
	if e.kept, err = session.Open(ctx, threads, o); err != nil {
		return nil, fmt.Errorf("threads: %w", err)
	}
	if e.passing, err = session.Open(ctx, nil, o); err != nil {
		return nil, err
	}
	for _, a := range cfg.Agents {
		if err := e.add(a, p.env, tools); err != nil {
			return nil, fmt.Errorf("agent %s: %w", quoted(a.Name), err)
		}
	}
	return e, nil
}

// add builds one agent.
func (e *engine) add(cfg *agentConfig, env func(string) string, tools agent.Tools) error {
	model, err := cfg.Model.model(env, e.log)
	if err != nil {
		e.log.Error("an agent's model is not set up: its runs fail", "agent", cfg.Name, "error", err)
		model = lostModel{}
	}
	prompt, err := cfg.prompt()
	if err != nil {
		e.log.Error("an agent's prompt cannot be read: its runs fail", "agent", cfg.Name, "error", err)
		model = lostModel{}
	}
	one := &engineAgent{cfg: cfg, keeper: e.kept, told: e.telemetry, tools: profile{next: tools, names: cfg.Tools, timeout: cfg.ToolTimeout, asks: cfg.History != historyStateless}, close: func() {}}
	if closer, ok := model.(interface{ Close() }); ok {
		one.close = closer.Close
	}
	if cfg.History == historyStateless {
		one.keeper = e.passing
	}
	one.agent, err = agent.New(e.telemetry.Model(model, cfg.Model.told()), one.tools, agent.Options{
		Model: cfg.Model.Name, Instructions: prompt, MaxToolRounds: cfg.Rounds, MaxAnswer: cfg.Model.MaxAnswer,
		MaxTokens: cfg.Tokens, MaxCost: cfg.Cost,
		Price:       agent.Price{Input: cfg.Model.PriceIn, CachedInput: cfg.Model.PriceCached, Output: cfg.Model.PriceOut},
		ResultBytes: cfg.Result, Parallel: cfg.Parallel, Repeats: cfg.Repeats,
		Polling: cfg.PollingTools, StateTools: cfg.StateTools, HideState: cfg.HideState,
		AskFor: cfg.AskFor,
	})
	if err != nil {
		return err
	}
	e.agents[cfg.Name] = one
	e.names = append(e.names, cfg.Name)
	return nil
}

// quiet returns when no run is left, or with the error of ctx.
func (e *engine) quiet(ctx context.Context) error {
	return errors.Join(e.kept.Quiet(ctx), e.passing.Quiet(ctx))
}

// Close ends all runs, with the code shutdown, and waits for them.
func (e *engine) Close() (err error) {
	for _, k := range []*session.Keeper{e.kept, e.passing} {
		if k != nil {
			err = errors.Join(err, k.Close())
		}
	}
	for _, a := range e.agents {
		a.close()
	}
	return err
}

// named returns an agent; the empty name is the default one's.
func (e *engine) named(name string) (*engineAgent, bool) {
	a, ok := e.agents[cmp.Or(name, e.names[0])]
	return a, ok
}

// A profile is what an agent may call of the tools that there are: those whose names fit
// one of its patterns, each for a time.
type profile struct {
	next    agent.Tools
	names   []string
	timeout time.Duration
	asks    bool // a question can be answered later
}

// List implements [agent.Tools].
func (p profile) List(c tool.Caller) []tool.Spec {
	all := p.next.List(c)
	if len(p.names) == 0 {
		return all
	}
	var some []tool.Spec
	for _, s := range all {
		if p.has(s.Name) {
			some = append(some, s)
		}
	}
	return some
}

func (p profile) has(name string) bool {
	return len(p.names) == 0 || slices.ContainsFunc(p.names, func(pattern string) bool { return covers(pattern, name) })
}

// Call implements [agent.Tools]. What the profile lacks does not exist, by none of its
// names.
func (p profile) Call(ctx context.Context, c tool.Caller, call tool.Call) (tool.Result, error) {
	if len(p.names) > 0 && !slices.ContainsFunc(p.List(c), func(s tool.Spec) bool { return s.Name == call.Name }) {
		return tool.Result{}, tool.NotFound(call.Name)
	}
	within, stop := context.WithTimeout(ctx, p.timeout)
	defer stop()
	res, err := p.next.Call(within, c, call)
	var ask *tool.AskError
	switch {
	case err == nil:
	case errors.As(err, &ask) && !p.asks:
		return res, fmt.Errorf("%w: %s", tool.ErrDenied, ask.Error())
	case within.Err() != nil && ctx.Err() == nil:
		return res, fmt.Errorf("%w: it took longer than %s, which the agent gives it", tool.ErrTimeout, p.timeout)
	}
	return res, err
}

// covers reports whether a name fits a pattern, in which * stands for any part of it.
func covers(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	for i := 0; i <= len(name); i++ {
		if covers(rest, name[i:]) {
			return true
		}
	}
	return false
}

// runner runs one turn of an agent, for the request that ctx is of. The run has a context
// of its own, which outlives that.
func (a *engineAgent) runner(ctx context.Context, caller tool.Caller, in event.Input, k session.Principal) session.Runner {
	request, place := requestID(ctx), telemetry.PlaceOf(ctx)
	return func(ctx context.Context, r *session.Run) (out session.Outcome, err error) {
		ctx, end := a.told.Run(place.Continue(ofRequest(ctx, request)), a.cfg.Model.told(), telemetry.Run{
			Agent: a.cfg.Name, Thread: caller.Conversation, ID: caller.RunID, Face: caller.Face,
		})
		err = errBroke // unless it returns
		defer func() { end(endOf(out, err, r.Record().Usage)) }()
		t := r.Thread()
		ctx, stop := context.WithTimeoutCause(ctx, a.cfg.Wall, errWall)
		defer stop()
		if err := a.prepare(ctx, r, in, k); err != nil {
			return session.Outcome{}, err
		}
		ran, err := a.agent.Run(ctx, r, agent.Input{
			Caller: caller, Functions: in.Tools, Context: in.Context, State: t.State, Open: r.Waiting().Person, Resume: in.Resume,
		})
		if err != nil && errors.Is(context.Cause(ctx), errWall) {
			err = &event.Failure{Code: event.CodeTimeout, Message: fmt.Sprintf("the run took longer than %s, the limit wall of its agent", a.cfg.Wall), Cause: err}
		}
		return session.Outcome(ran), err
	}
}

// errWall is why the context of a run ends that took too long.
var errWall = errors.New("the run took longer than its agent gives it")

// wallGrace is how much longer the keeper of threads waits for a run than its agent does,
// which says what was too long.
const wallGrace = 10 * time.Second

// errBroke is told of a run that panicked, which is not the one to handle it.
var errBroke = errors.New("the run broke")

// endOf is what is told of the end of a run.
func endOf(out session.Outcome, err error, used []chat.Usage) telemetry.Ended {
	end := telemetry.Ended{Outcome: string(event.Success), Usage: used}
	switch {
	case err != nil:
		end.Error = event.ErrorOf(err).Code
		end.Outcome = "error"
	case len(out.Interrupts) > 0:
		end.Outcome = string(event.Interrupted)
	}
	return end
}

// owns refuses a run in a thread that another agent began.
func (a *engineAgent) owns(t session.Thread) error {
	if t.Agent == "" || t.Agent == a.cfg.Name {
		return nil
	}
	return &event.Failure{Code: event.CodeInvalid, Message: fmt.Sprintf("threadId: the thread is one of the agent %s: ask that one, or begin another thread", quoted(t.Agent))}
}

// mostIgnored is how many messages that were left out are told of.
const mostIgnored = 10

// prepare tells a client what of its history does not count, and what it does not know
// of the thread's.
func (a *engineAgent) prepare(ctx context.Context, r *session.Run, in event.Input, p session.Principal) error {
	for i, m := range r.Ignored() {
		if i == mostIgnored {
			break
		}
		value, err := json.Marshal(map[string]string{"code": "message_ignored", "message": fmt.Sprintf("message %s was left out: %s", quoted(m.ID), m.Why)})
		if err != nil {
			return err
		}
		if err := r.Emit(event.Custom{Name: agent.Warning, Value: value}); err != nil {
			return err
		}
	}
	if a.cfg.History == historyStateless || len(in.Messages) < 2 {
		return nil
	}
	stored, err := a.keeper.Messages(ctx, p, r.Thread().Ref, "", lately)
	if err != nil {
		return err
	}
	if whole := missed(in.Messages, stored); whole != nil {
		return r.Emit(event.MessagesSnapshot{Messages: whole})
	}
	return nil
}

// lately is how many messages of a thread are compared with a client's.
const lately = 200

// missed returns the history as a client ought to know it, nil if it knows it: one that
// sends its history may lack what was said in the thread meanwhile (C-28). One that sends
// only what is new is not told what it does not want to know.
func missed(sent []chat.Message, stored []session.Stored) []chat.Message {
	at := map[string]int{}
	for i, m := range sent {
		at[m.ID] = i
	}
	first := slices.IndexFunc(stored, func(m session.Stored) bool { _, ok := at[m.ID]; return ok })
	if first < 0 {
		return nil
	}
	lacks := false
	whole := slices.Clone(sent[:at[stored[first].ID]])
	for _, m := range stored[first:] {
		_, knows := at[m.ID]
		lacks = lacks || !knows
		whole = append(whole, m.Message)
	}
	if !lacks {
		return nil
	}
	return whole
}
