package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
)

// A Model answers a conversation (requirement S3-026: LlmClient). An error is the last
// of a sequence, and one of package chat's or that of the context.
type Model interface {
	Stream(context.Context, chat.Request) iter.Seq2[chat.Delta, error]
}

// Tools are what the server can do. List has what the caller may call, in any order,
// and is not changed. Errors of Call wrap those of package tool; a [tool.AskError] says
// that nothing was started.
type Tools interface {
	List(tool.Caller) []tool.Spec
	Call(context.Context, tool.Caller, tool.Call) (tool.Result, error)
}

// A Turn is where a run speaks.
type Turn interface {
	// Messages are what the model is shown, each call with its result.
	Messages() []chat.Message
	// Emit sends an event at once.
	Emit(event.Event) error
	// Add adds a message, of which what was not streamed is sent.
	Add(chat.Message) error
	// Commit makes durable what was added, and sends results.
	Commit(context.Context, ...event.Job) error
	// Use counts what the model cost.
	Use(chat.Usage)
	// SetState replaces the thread's state, for the next commit.
	SetState(json.RawMessage) error
}

// The bounds of Options.MaxToolRounds.
const (
	DefaultToolRounds = 16
	MostToolRounds    = 64
)

// Options say how an agent runs. The zero value works.
type Options struct {
	// Model is the name of the model, as its provider knows it; empty is the provider's
	// own choice.
	Model string
	// Instructions are told to the model before anything else.
	Instructions string
	// MaxToolRounds is how many rounds of calls a run may have. Default 16, at most 64.
	MaxToolRounds int
	// MaxAnswer bounds one answer of the model, in tokens; 0 is the provider's bound.
	MaxAnswer int
	// MaxTokens bounds what all requests of a run take and give, in tokens, and MaxCost
	// their price; 0 is no bound. Where a provider does not say what it used, four bytes
	// are a token. A run that is over ends before anything else is called.
	MaxTokens int64
	MaxCost   float64
	Price     Price
	// ResultBytes is how much of a result is kept and shown to the model. Default 32 KiB.
	ResultBytes int
	// Parallel is how many calls there may be at the same time. Default 8.
	Parallel int
	// Repeats is how often a tool is called with the same arguments before the model is
	// told that this leads nowhere; from the next time on it is refused. What only reads
	// counts anew after something else has been changed. Default 3.
	Repeats int
	// Polling names tools that are meant to be called again and again.
	Polling []string
	// StateTools names tools that may change the state that agent and client share: what
	// their results have as "ag-ui/state" in _meta, an object. Each of its members
	// replaces that of the state, null removes it.
	StateTools []string
	// HideState keeps the state from the model, which sees it as data otherwise
	// (requirement S3-038).
	HideState bool
	// AskFor is how long a question to a person may be answered; later it is denied.
	// Default 24 hours.
	AskFor time.Duration
	// NewID makes the ids of messages. Default: random.
	NewID func() string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Price is what a million tokens cost, in any currency. Of the input those are cached
// that the provider says so.
type Price struct{ Input, CachedInput, Output float64 }

// An Agent runs turns, several at once if need be.
type Agent struct {
	model   Model
	tools   Tools
	o       Options
	polling map[string]bool
	state   map[string]bool // tools that may change it
}

// New returns an agent, or an error if an option is out of its bounds.
func New(m Model, t Tools, o Options) (*Agent, error) {
	if o.MaxToolRounds < 0 || o.MaxToolRounds > MostToolRounds {
		return nil, fmt.Errorf("%d tool rounds, allowed are 1 to %d", o.MaxToolRounds, MostToolRounds)
	}
	for _, n := range []struct {
		what string
		is   float64
	}{
		{"tokens of an answer", float64(o.MaxAnswer)}, {"tokens of a run", float64(o.MaxTokens)}, {"cost of a run", o.MaxCost},
		{"price of input", o.Price.Input}, {"price of cached input", o.Price.CachedInput}, {"price of output", o.Price.Output},
		{"bytes of a result", float64(o.ResultBytes)}, {"calls at the same time", float64(o.Parallel)}, {"repeats", float64(o.Repeats)},
		{"time for an answer", float64(o.AskFor)},
	} {
		if !(n.is >= 0) { // NaN is neither
			return nil, fmt.Errorf("%s: %v, allowed is 0 or more", n.what, n.is)
		}
	}
	if o.MaxCost > 0 && o.Price == (Price{}) {
		return nil, fmt.Errorf("cost of a run is at most %v, but there is no price: name what a million tokens cost", o.MaxCost)
	}
	o.MaxToolRounds = cmp.Or(o.MaxToolRounds, DefaultToolRounds)
	o.ResultBytes = cmp.Or(o.ResultBytes, 32<<10)
	o.Parallel = cmp.Or(o.Parallel, 8)
	o.Repeats = cmp.Or(o.Repeats, 3)
	o.AskFor = cmp.Or(o.AskFor, 24*time.Hour)
	if o.NewID == nil {
		o.NewID = rand.Text
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Agent{model: m, tools: t, o: o, polling: setOf(o.Polling), state: setOf(o.StateTools)}, nil
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// Input is what a run begins with, besides the messages.
type Input struct {
	// Caller is who calls tools; each call gets its own CallID.
	Caller tool.Caller
	// Functions are tools that run in the client.
	Functions []event.Tool
	// Context surrounds the person; the model sees it as data.
	Context []event.Context
	// State is what agent and client share; empty is none.
	State json.RawMessage
	// Open are the questions that the run before left, as they were kept: never what a
	// client sent. Resume answers them.
	Open   []event.Interrupt
	Resume []event.Resume
}

// Outcome is how a run ended that did not fail.
type Outcome struct {
	// Interrupts are questions to a person that the run ended with.
	Interrupts []event.Interrupt
	// Result is {"stop":"length"} where the answer is not whole, else nil.
	Result json.RawMessage
}

// Run runs one turn, until an answer or until ctx ends. What it returns besides the
// context's error is a [event.Failure] or an error of t.
func (a *Agent) Run(ctx context.Context, t Turn, in Input) (Outcome, error) {
	r := &run{a: a, Turn: t, in: in, state: in.State, counts: map[string]repeat{}, asks: map[string]bool{}, denied: map[string]bool{}}
	out, err := r.all(ctx)
	if err != nil && ctx.Err() != nil {
		return Outcome{}, ctx.Err()
	}
	return out, err
}
