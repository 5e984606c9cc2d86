package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/prompt"
)

// A call is one that the model asks for, and what became of it.
type call struct {
	chat.ToolCall
	index int
	raw   strings.Builder
	// cut: the arguments are not whole, as the answer ended within them.
	cut  bool
	args json.RawMessage

	// One of these says what became of it, once it is settled; failed ends the run.
	result string
	handed bool // to the client
	asked  *tool.AskError
	failed error

	note string
	// ran: the tool answered, with res if it is ok; lacks: it was unavailable.
	ran, ok, lacks bool
	res            tool.Result
}

// carryOut does what an answer asks for; over says that the run ends with out.
func (r *run) carryOut(ctx context.Context, ans *answer, n int) (out Outcome, over bool, err error) {
	r.done = r.done || ans.text.Len() > 0
	if err := r.Add(ans.message()); err != nil {
		return out, false, err
	}
	if why := r.mayCall(n); why != nil {
		return out, false, cmp.Or(r.refuseAll(ans, why), why)
	}
	todo := r.sorted(ans.calls)
	if err := r.execute(ctx, todo); err != nil {
		return out, false, err
	}
	r.refuseAsks(ans.calls)
	if err := r.settle(ctx, ans.id, ans.calls); err != nil {
		return out, false, err
	}
	for _, c := range ans.calls {
		over = over || c.handed || c.asked != nil
		if c.asked != nil {
			i, err := r.question(ans.id, c)
			if err != nil {
				return out, false, err
			}
			out.Interrupts = append(out.Interrupts, i)
		}
	}
	if over {
		return out, true, nil
	}
	return out, false, r.Commit(ctx)
}

// mayCall returns why nothing may be called in round n.
func (r *run) mayCall(n int) error {
	if most := r.a.o.MaxToolRounds; n > most {
		return failure(CodeToolRounds, fmt.Sprintf("the model wanted to call tools after %d rounds, which are the most: ask for less at a time", most))
	}
	return r.affords()
}

// refuseAll answers all calls of a run that fails with why, but for those of the client,
// which learns from the end of the run that nobody waits for them.
func (r *run) refuseAll(ans *answer, why error) error {
	for _, c := range ans.calls {
		if r.isClients(c) {
			continue
		}
		c.result = prompt.NotRun(event.ErrorOf(why).Code, why.Error(), "")
		if err := r.addResult(ans.id, c); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) isClients(c *call) bool { return r.offer.IsClients(c.Function.Name) }

// sorted settles what needs no tool of the server, and returns the rest.
func (r *run) sorted(calls []*call) (todo []*call) {
	for _, c := range calls {
		switch {
		case c.cut:
			c.result = prompt.NotRun(CodeAnswerCut, "your answer reached the bound of its length within this call", "call it again with shorter arguments")
		case !prompt.IsObject(c.args):
			c.result = prompt.NotRun("invalid_arguments", fmt.Sprintf("the arguments are no JSON object: %s", jsonFault(c.args)), "call it again with one")
		case r.isClients(c):
			c.handed = true
		default:
			if c.result = r.breaks(c); c.result == "" {
				todo = append(todo, c)
			}
		}
	}
	return todo
}

func jsonFault(args json.RawMessage) string {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("found is %s", prompt.Short(string(args), 60))
}

// execute carries out calls: at the same time if all of them only read.
func (r *run) execute(ctx context.Context, calls []*call) error {
	reads := func(c *call) bool { return r.offer.ReadsOnly(c.Function.Name) }
	if len(calls) == 0 {
		return nil
	}
	if slices.ContainsFunc(calls, func(c *call) bool { return !reads(c) }) {
		if err := r.Commit(ctx); err != nil { // so that a crash leaves a trace
			return err
		}
		r.inOrder(ctx, calls)
		return nil
	}
	if len(calls) == 1 {
		r.do(ctx, calls[0], false)
		return nil
	}
	r.together(ctx, calls)
	return nil
}

// inOrder carries out calls one after the other. Those behind one that waits for a
// person may rely on it.
func (r *run) inOrder(ctx context.Context, calls []*call) {
	waits := false
	for _, c := range calls {
		name := c.Function.Name
		switch {
		case ctx.Err() != nil:
			return
		case waits && !r.offer.ReadsOnly(name) && !r.asks[name]:
			c.result = prompt.NotRun("waits", "a call before it waits for a person", "call it again when that is decided")
			continue
		}
		r.do(ctx, c, false)
		if c.failed != nil {
			return
		}
		if c.asked != nil {
			waits, r.asks[name] = true, true
		}
	}
}

// together carries out calls at the same time, as many as may be. One that ends the run
// ends the others.
func (r *run) together(ctx context.Context, calls []*call) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, r.a.o.Parallel)
	for _, c := range calls {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		all.Go(func() {
			defer func() { <-room }()
			if r.do(ctx, c, false); c.failed != nil {
				stop()
			}
		})
	}
}

// do carries out one call. It may run at the same time as others.
func (r *run) do(ctx context.Context, c *call, allowed bool) {
	defer func() {
		if p := recover(); p != nil {
			c.failed = &event.Failure{Code: event.CodeInternal, Message: "a tool failed inside hutch: its log says why",
				Cause: fmt.Errorf("tool %s: panic: %v\n%s", prompt.Quoted(c.Function.Name), p, debug.Stack())}
		}
	}()
	caller := r.in.Caller
	caller.CallID = c.ID
	res, err := r.a.tools.Call(ctx, caller, tool.Call{Name: c.Function.Name, Arguments: c.args, Approved: allowed})
	if err != nil && ctx.Err() != nil {
		return // nobody knows whether it was carried out, and the run ends
	}
	c.took(res, err, r.a.o.ResultBytes)
}

// took takes what came of a call.
func (c *call) took(res tool.Result, err error, most int) {
	var ask *tool.AskError
	switch {
	case err == nil:
		c.ran, c.ok, c.res = true, !res.IsError, res
		if c.result = tool.ResultText(res, most); c.result == "" {
			c.result = noText
		}
		return
	case errors.As(err, &ask):
		c.asked = ask
		if ask.Arguments != nil { // the person sees what the tool will get
			c.args = ask.Arguments
		}
		return
	}
	text, known := prompt.ToolFailed(err)
	if !known {
		c.failed = &event.Failure{Code: event.CodeInternal, Message: "a tool failed inside hutch: its log says why",
			Cause: fmt.Errorf("tool %s: %w", prompt.Quoted(c.Function.Name), err)}
		return
	}
	c.ran, c.result, c.lacks = true, text, errors.Is(err, tool.ErrUnavailable)
}

// noText is what a model reads of a tool that answered nothing.
const noText = "[done; there is no output]"

// refuseAsks refuses calls that wait for a person beside calls of the client: a run
// cannot end with both.
func (r *run) refuseAsks(calls []*call) {
	if !slices.ContainsFunc(calls, func(c *call) bool { return c.handed }) {
		return
	}
	for _, c := range calls {
		if c.asked != nil {
			c.asked = nil
			c.result = prompt.NotRun("waits", "it waits for a person, who cannot be asked beside a call of the tools of the client", "call it again, alone")
		}
	}
}

// settle adds the results of a round, in the order of its calls. It returns why the run
// ends, if it does; what was carried out is added first.
func (r *run) settle(ctx context.Context, parent string, calls []*call) error {
	var failed error
	tried, lacked, wrote := 0, 0, false
	for _, c := range calls {
		if c.failed != nil && failed == nil {
			failed = c.failed
		}
		if c.result == "" {
			continue
		}
		if err := r.addResult(parent, c); err != nil {
			return err
		}
		if c.ran {
			tried++
			wrote = wrote || c.ok && !r.offer.ReadsOnly(c.Function.Name)
		}
		if c.lacks {
			lacked++
		}
	}
	r.done = r.done || tried > 0
	if wrote {
		r.changed()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed != nil:
		return failed
	case tried == 0:
	case lacked < tried:
		r.lacking = 0
	default:
		r.lacking++
	}
	if r.lacking >= mostLacking {
		return failure(event.CodeUnavailable, "the tools are not available: try again later")
	}
	return nil
}

// mostLacking is how many rounds in a row may find the tools unavailable.
const mostLacking = 2

// addResult adds what a call came to, and changes the state if it says so.
func (r *run) addResult(parent string, c *call) error {
	m := chat.Message{ID: chat.ResultID(parent, c.ID), Role: chat.Tool, ToolCallID: c.ID, Content: chat.Text(c.result)}
	if err := r.Add(m); err != nil {
		return err
	}
	if c.note != "" {
		r.notes = append(r.notes, prompt.Note{Result: m.ID, Text: c.note})
	}
	if !c.ok {
		return nil
	}
	return r.changeState(c.Function.Name, c.res)
}
