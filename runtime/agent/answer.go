package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/prompt"
)

// An answer is what the model says in one round, as it comes.
type answer struct {
	id    string
	text  strings.Builder
	space string // that came before the text; of a text that is only space nothing is told
	calls []*call
	stop  chat.Stop
	// bytes is how much came, and used whether the provider said what it cost.
	bytes int
	used  bool

	texting, thinking bool // what is open
}

// message is the answer as it is kept.
func (a *answer) message() chat.Message {
	m := chat.Message{ID: a.id, Role: chat.Assistant}
	if a.text.Len() > 0 {
		m.Content = chat.Text(a.text.String())
	}
	for _, c := range a.calls {
		m.ToolCalls = append(m.ToolCalls, c.ToolCall)
	}
	return m
}

// mostNarrower is how often a request is made smaller that is too large.
const mostNarrower = 4

// ask asks the model, and sends what it says as it comes. A conversation that is too
// long for the model is shown to it from a later turn on.
func (r *run) ask(ctx context.Context) (*answer, error) {
	for n := 0; ; n++ {
		ans := &answer{id: r.a.o.NewID()}
		req := r.request()
		err := r.stream(ctx, req, ans)
		switch {
		case err == nil:
			if !ans.used {
				r.spent.guess(req, ans, r.a.o.Price)
			}
			return ans, nil
		case n == mostNarrower || ans.bytes > 0 || !isTooLong(err) || !r.narrow():
			return nil, streamFailed(err)
		}
		if err := r.warn("history_cut", "the conversation is too long for the model: it sees only the end of it"); err != nil {
			return nil, err
		}
	}
}

// request is what the model is asked next.
func (r *run) request() chat.Request {
	o := r.a.o
	c := prompt.Conversation{Instructions: o.Instructions, History: r.view(), Context: r.in.Context, Notes: r.notes}
	if !o.HideState && hasState(r.state) {
		c.State = r.state
	}
	return chat.Request{Model: o.Model, Messages: c.Messages(), Tools: r.offer.Functions, MaxTokens: r.spent.answer(o)}
}

// view is what the model sees of the thread.
func (r *run) view() []chat.Message { return prompt.Shown(r.Messages(), r.from) }

// narrow has the model see about half of the turns that it saw; it reports whether there
// was more than one.
func (r *run) narrow() bool {
	from, ok := prompt.Narrower(r.view())
	if ok {
		r.from = from
	}
	return ok
}

func isTooLong(err error) bool {
	var over *chat.OverflowError
	return errors.As(err, &over) && over.Which == chat.OverflowContext
}

func (r *run) stream(ctx context.Context, req chat.Request, ans *answer) error {
	for d, err := range r.a.model.Stream(ctx, req) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = r.take(ans, d)
		}
		if err != nil {
			return err
		}
	}
	switch ans.stop {
	case "":
		return fmt.Errorf("%w: the model ended it without saying so", chat.ErrCut)
	case chat.StopFilter:
		return failure(CodeContentFilter, "the provider of the model withheld its answer: say it in other words")
	}
	return r.end(ans)
}

// A sendError says that what came of the model could not be sent, which is not the
// model's fault.
type sendError struct{ error }

func (e sendError) Unwrap() error { return e.error }

func streamFailed(err error) error {
	var sent sendError
	var own *event.Failure
	switch {
	case errors.As(err, &sent):
		return sent.error
	case errors.As(err, &own):
		return err
	}
	return modelFailed(err)
}

// take sends one piece of an answer.
func (r *run) take(ans *answer, d chat.Delta) error {
	if d.Usage != nil {
		ans.used = ans.used || max(d.Usage.InputTokens, d.Usage.OutputTokens, d.Usage.TotalTokens) > 0
		r.Use(*d.Usage)
		r.spent.add(*d.Usage, r.a.o.Price)
	}
	if d.Stop != "" {
		ans.stop = d.Stop
	}
	switch {
	case d.Text != "":
		return r.takeText(ans, d.Text)
	case d.Reasoning != "":
		return r.takeReasoning(ans, d.Reasoning)
	case d.Call != nil:
		return r.takeCall(ans, *d.Call)
	}
	return nil
}

// send emits events.
func (r *run) send(events ...event.Event) error {
	for _, e := range events {
		if err := r.Emit(e); err != nil {
			return sendError{err}
		}
	}
	return nil
}

func (r *run) takeText(ans *answer, text string) error {
	ans.bytes += len(text)
	if !ans.texting {
		if ans.space += text; strings.TrimSpace(text) == "" {
			return nil
		}
		if err := r.close(ans); err != nil {
			return err
		}
		text, ans.space, ans.texting = ans.space, "", true
		if err := r.send(event.TextMessageStart{MessageID: ans.id, Role: chat.Assistant}); err != nil {
			return err
		}
	}
	ans.text.WriteString(text)
	return r.send(event.TextMessageContent{MessageID: ans.id, Delta: text})
}

// close ends the text or the thoughts that are open.
func (r *run) close(ans *answer) error {
	if ans.texting {
		ans.texting = false
		return r.send(event.TextMessageEnd{MessageID: ans.id})
	}
	if ans.thinking {
		ans.thinking = false
		id := ans.thoughts()
		return r.send(event.ReasoningMessageEnd{MessageID: id}, event.ReasoningEnd{MessageID: id})
	}
	return nil
}

// thoughts is the id of what the model thinks before it answers.
func (a *answer) thoughts() string { return a.id + ":reasoning" }

func (r *run) takeReasoning(ans *answer, text string) error {
	ans.bytes += len(text)
	id := ans.thoughts()
	if !ans.thinking {
		if err := r.close(ans); err != nil {
			return err
		}
		ans.thinking = true
		if err := r.send(event.ReasoningStart{MessageID: id}, event.ReasoningMessageStart{MessageID: id, Role: chat.Reasoning}); err != nil {
			return err
		}
	}
	return r.send(event.ReasoningMessageContent{MessageID: id, Delta: text})
}

func (r *run) takeCall(ans *answer, d chat.CallDelta) error {
	ans.bytes += len(d.Name) + len(d.Arguments)
	c := ans.call(d.Index)
	if c == nil {
		if d.Name == "" || len(d.Name) > mostCallName || !utf8.ValidString(d.Name) {
			return fmt.Errorf("%w: a call of a tool without a name, or with one of more than %d bytes", chat.ErrMalformed, mostCallName)
		}
		if len(ans.calls) == mostCalls {
			return fmt.Errorf("%w: more than %d calls of tools at once", chat.ErrLimit, mostCalls)
		}
		if err := r.close(ans); err != nil {
			return err
		}
		c = &call{index: d.Index, ToolCall: chat.ToolCall{ID: r.callID(ans, d), Type: "function", Function: chat.FunctionCall{Name: d.Name}}}
		ans.calls = append(ans.calls, c)
		if err := r.send(event.ToolCallStart{ToolCallID: c.ID, ToolCallName: d.Name, ParentMessageID: ans.id}); err != nil {
			return err
		}
	}
	if d.Arguments == "" {
		return nil
	}
	c.raw.WriteString(d.Arguments)
	return r.send(event.ToolCallArgs{ToolCallID: c.ID, Delta: d.Arguments})
}

func (a *answer) call(index int) *call {
	for _, c := range a.calls {
		if c.index == index {
			return c
		}
	}
	return nil
}

// How many calls one answer may have, the longest name of one, and the longest id:
// results have ids that are made of it.
const (
	mostCalls    = 128
	mostCallName = 256
	mostCallID   = 128
)

// callID is the id of a call: the model's own, unless there is none, or a call of the
// thread that has it, as with providers that count anew for each answer.
func (r *run) callID(ans *answer, d chat.CallDelta) string {
	if r.ids == nil {
		r.ids = map[string]bool{}
		for _, m := range r.Messages() {
			for _, c := range m.ToolCalls {
				r.ids[c.ID] = true
			}
		}
	}
	id := d.ID
	if id == "" || len(id) > mostCallID || !utf8.ValidString(id) || strings.ContainsRune(id, 0) || r.ids[id] {
		id = fmt.Sprintf("%s-%d", ans.id, len(ans.calls)+1)
	}
	r.ids[id] = true
	return id
}

// end closes what is open when the model has stopped: from now on arguments are whole.
func (r *run) end(ans *answer) error {
	if err := r.close(ans); err != nil {
		return err
	}
	for _, c := range ans.calls {
		c.Function.Arguments = c.raw.String()
		c.cut = ans.stop == chat.StopLength && !prompt.IsObject([]byte(c.Function.Arguments))
		if strings.TrimSpace(c.Function.Arguments) == "" {
			c.Function.Arguments = "{}"
			if err := r.send(event.ToolCallArgs{ToolCallID: c.ID, Delta: "{}"}); err != nil {
				return err
			}
		}
		c.args = json.RawMessage(c.Function.Arguments)
		if err := r.send(event.ToolCallEnd{ToolCallID: c.ID}); err != nil {
			return err
		}
	}
	return nil
}
