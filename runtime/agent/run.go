package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/prompt"
)

// Warning is the name of a CUSTOM event whose value has a code and a message for people.
const Warning = "hutch.warning"

// run is one turn. It belongs to one goroutine.
type run struct {
	a *Agent
	Turn
	in Input

	offer prompt.Offer
	// from is the id of the message that the model's view begins with; empty is all.
	from string
	// ids are those of all calls that are known; nil is not read yet.
	ids   map[string]bool
	state json.RawMessage
	spent spent
	// done: the run has said or done something.
	done bool

	counts map[string]repeat
	notes  []prompt.Note
	asks   map[string]bool // tools that asked for a person
	denied map[string]bool // calls that one did not allow, by their keys
	// lacking is how many rounds in a row found the tools unavailable.
	lacking int
}

func (r *run) all(ctx context.Context) (Outcome, error) {
	if err := r.begin(); err != nil {
		return Outcome{}, err
	}
	open, err := r.resume(ctx)
	if err != nil || len(open) > 0 {
		return Outcome{Interrupts: open}, err
	}
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return Outcome{}, err
		}
		out, over, err := r.round(ctx, n)
		if err != nil {
			return Outcome{}, err
		}
		if over {
			return out, nil
		}
	}
}

// begin finds out what the model is offered, and tells the client of the state.
func (r *run) begin() error {
	var warnings []prompt.Warning
	r.offer, warnings = prompt.NewOffer(r.a.tools.List(r.in.Caller), r.in.Functions)
	for _, w := range warnings {
		if err := r.warn(w.Code, w.Message); err != nil {
			return err
		}
	}
	if !hasState(r.state) {
		return nil
	}
	return r.Emit(event.StateSnapshot{Snapshot: r.state})
}

// warn tells those who listen what went otherwise than asked for.
func (r *run) warn(code, message string) error {
	value, err := json.Marshal(map[string]string{"code": code, "message": message})
	if err != nil {
		return err
	}
	return r.Emit(event.Custom{Name: Warning, Value: value})
}

// round asks the model once, and carries out what it asks for; over says that the run
// has ended with out.
func (r *run) round(ctx context.Context, n int) (out Outcome, over bool, err error) {
	step := fmt.Sprintf("round %d", n)
	if err := r.Emit(event.StepStarted{StepName: step}); err != nil {
		return out, false, err
	}
	ans, err := r.ask(ctx)
	if err != nil {
		return out, false, err
	}
	if len(ans.calls) == 0 {
		out, err = r.conclude(ans)
		over = true
	} else {
		out, over, err = r.carryOut(ctx, ans, n)
	}
	if err != nil {
		return out, false, err
	}
	return out, over, r.Emit(event.StepFinished{StepName: step})
}

// conclude ends a run with an answer.
func (r *run) conclude(ans *answer) (out Outcome, err error) {
	text := ans.text.String()
	switch {
	case text == "" && ans.stop == chat.StopLength:
		return out, failure(CodeAnswerCut, "the model used up all the tokens of an answer before it said anything: allow more of them")
	case text == "" && !r.done:
		return out, failure(CodeEmptyAnswer, "the model said nothing: try again, or say it in other words")
	case text == "":
		return out, nil
	}
	m := ans.message()
	if ans.stop == chat.StopLength {
		m.Incomplete, out.Result = true, json.RawMessage(`{"stop":"length"}`)
		if err := r.warn(CodeAnswerCut, "the answer is not whole: it reached the bound of its length"); err != nil {
			return out, err
		}
	}
	return out, r.Add(m)
}
