package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// ReasonToolCall is the reason of a question whether a tool may be called.
const ReasonToolCall = "tool_call"

// answerSchema is what the answer to such a question has to look like.
const answerSchema = `{"type":"object","properties":{"approved":{"type":"boolean"}},"required":["approved"]}`

// kept is what a question carries with it, so that nothing else is carried out than
// what was shown.
type kept struct {
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	Message   string `json:"message"` // id of the one with the call
}

// mostShown is how much of the arguments a question shows, in bytes. All of them stand
// in the call, and in the question's metadata.
const mostShown = 2000

// question asks a person whether a call may be carried out.
func (r *run) question(parent string, c *call) (event.Interrupt, error) {
	meta, err := json.Marshal(kept{c.Function.Name, string(c.args), parent})
	if err != nil {
		return event.Interrupt{}, err
	}
	text := visible(short(c.asked.Question, mostShown))
	if text == "" {
		text = fmt.Sprintf("Allow %s with %s?", visible(c.Function.Name), visible(short(string(c.args), mostShown)))
	}
	return event.Interrupt{
		ID: parent + ":" + c.ID + ":ask", Reason: ReasonToolCall, Message: text, ToolCallID: c.ID, Metadata: meta,
		ResponseSchema: json.RawMessage(answerSchema),
		ExpiresAt:      r.a.o.Now().Add(r.a.o.AskFor).UTC().Format(time.RFC3339),
	}, nil
}

// A verdict is what a person decided, or did not.
type verdict int

const (
	undecided verdict = iota
	approved
	denied
	expired
)

// decided says what the entries of an input say about a question, and the payload that
// says so. Of several entries a denial counts.
func (r *run) decided(i event.Interrupt) (v verdict, payload json.RawMessage, err error) {
	for _, e := range r.in.Resume {
		if e.InterruptID != i.ID {
			continue
		}
		one := undecided
		switch e.Status {
		case event.ResumeCancelled:
			one = denied
		case event.ResumeResolved:
			if one = verdictOf(e.Payload); one == undecided {
				err = r.warn("resume_payload", fmt.Sprintf(`the answer to %s is not {"approved": true} or {"approved": false}`, quoted(i.ID)))
			}
		}
		if one != undecided && v != denied {
			v, payload = one, e.Payload
		}
	}
	if late := lateFor(i, r.a.o.Now()); late {
		return expired, nil, err
	}
	return v, payload, err
}

func verdictOf(payload json.RawMessage) verdict {
	var p struct {
		Approved *bool `json:"approved"`
	}
	switch err := json.Unmarshal(payload, &p); {
	case err != nil || p.Approved == nil:
		return undecided
	case *p.Approved:
		return approved
	}
	return denied
}

// lateFor reports whether nobody answered a question in time.
func lateFor(i event.Interrupt, now time.Time) bool {
	end, err := time.Parse(time.RFC3339, i.ExpiresAt)
	return err == nil && !now.Before(end)
}

// resume carries out what a person allowed, and returns the questions that are still
// open.
func (r *run) resume(ctx context.Context) (open []event.Interrupt, err error) {
	if err := r.warnOfStrangers(); err != nil {
		return nil, err
	}
	added := false
	for _, i := range r.in.Open {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, parent, ok := keptCall(i)
		if !ok {
			if err := r.warn("resume_unknown", fmt.Sprintf("the question %s is not about a call: it is closed", quoted(i.ID))); err != nil {
				return nil, err
			}
			continue
		}
		v, payload, err := r.decided(i)
		if err != nil {
			return nil, err
		}
		if v == undecided {
			open = append(open, i)
			continue
		}
		added = true
		if err := r.obey(ctx, parent, c, v, payload); err != nil {
			return nil, err
		}
	}
	if !added {
		return open, nil
	}
	return open, r.Commit(ctx)
}

// warnOfStrangers says which entries answer nothing that was asked.
func (r *run) warnOfStrangers() error {
	asked := map[string]bool{}
	for _, i := range r.in.Open {
		asked[i.ID] = true
	}
	for _, e := range r.in.Resume {
		if asked[e.InterruptID] {
			continue
		}
		if err := r.warn("resume_unknown", fmt.Sprintf("nothing waits for an answer to %s: it is ignored", quoted(e.InterruptID))); err != nil {
			return err
		}
	}
	return nil
}

// keptCall is the call that a question is about, and the message that it stands in.
func keptCall(i event.Interrupt) (c *call, parent string, ok bool) {
	var k kept
	if i.Reason != ReasonToolCall || i.ToolCallID == "" || json.Unmarshal(i.Metadata, &k) != nil || k.Tool == "" || k.Message == "" {
		return nil, "", false
	}
	return &call{
		ToolCall: chat.ToolCall{ID: i.ToolCallID, Type: "function", Function: chat.FunctionCall{Name: k.Tool, Arguments: k.Arguments}},
		args:     json.RawMessage(k.Arguments),
	}, k.Message, true
}

// obey does with a call what was decided.
func (r *run) obey(ctx context.Context, parent string, c *call, v verdict, payload json.RawMessage) error {
	switch v {
	case approved:
		if r.do(ctx, c, true); c.asked != nil { // the policy has changed, and is not asked twice
			c.result, _ = toolFailed(c.asked)
			c.asked = nil
		}
	case expired:
		r.denied[c.key()] = true
		c.result = notRun("denied", "nobody allowed it in time", "do not try again; go on without it, or tell the person")
	default:
		r.denied[c.key()] = true
		c.result = denial(payload)
	}
	return r.settle(ctx, parent, []*call{c})
}

// denial is what the model reads of a call that a person did not allow: literally what
// they answered is part of it.
func denial(payload json.RawMessage) string {
	text := notRun("denied", "a person was asked and did not allow it", "do not try again; go on without it, or ask the person what they want")
	const most = 4 << 10
	if len(payload) > most || !json.Valid(payload) {
		return text
	}
	return strings.TrimSuffix(text, "}") + `,"response":` + string(payload) + "}"
}
