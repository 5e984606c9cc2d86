package session

import (
	"context"
	"encoding/json"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// A Runner runs one turn, until it returns or ctx ends: then it must return soon. It
// speaks through r, which is its own until then.
type Runner func(ctx context.Context, r *Run) (Outcome, error)

// Outcome is how a run ended that did not fail.
type Outcome struct {
	// Interrupts are questions to a person that the run ended with.
	Interrupts []event.Interrupt
	// Result is what the run is worth besides what it said, as JSON.
	Result json.RawMessage
}

// Input is what a run begins with.
type Input struct {
	Thread string
	// RunID is the client's; empty is a fresh one. The same id with the same input is
	// the same run: it is not run again.
	RunID   string
	Parent  string
	Trigger Trigger // empty is [ByClient]
	Agent   string
	// Title is for a thread that has none; empty is the first text of a user.
	Title    string
	Messages []chat.Message
	Mode     Mode // empty is [Append]
	// Trusted lets the input say what assistants, tools and the system said.
	Trusted bool
	// State replaces the thread's; nil leaves it.
	State json.RawMessage
	// Fits, if not nil, is asked before the run begins, of the thread as it is then: a new
	// one has no agent. What it returns refuses the run, of which nothing is kept but that
	// it waited. It must be quick, and is no part of what is compared.
	Fits func(Thread) error `json:"-"`
	// Jobs are what the beginning of the run causes; they are kept with it.
	Jobs []event.Job
	// Also is what else the input consists of, such as tools and context, as JSON. It is
	// compared, and not kept.
	Also json.RawMessage
}

// Mode says what a client's list of messages means for a thread.
type Mode string

// The modes.
const (
	// Append adds the messages whose ids the thread does not know, in their order, and
	// leaves those that it does: whatever they say now. A list of only the new ones is
	// as good as a whole history.
	Append Mode = "append"
	// Replace makes the list the history: what is not in it is dropped, a user's message
	// that says something else is edited. What the server wrote stays as it wrote it.
	Replace Mode = "replace"
)
