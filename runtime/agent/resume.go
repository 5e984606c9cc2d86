package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/approval"
	"github.com/hutch-run/hutch/runtime/prompt"
)

// question asks a person whether a call may be carried out.
func (r *run) question(parent string, c *call) (event.Interrupt, error) {
	asked := approval.Call{ID: c.ID, Message: parent, Tool: c.Function.Name, Arguments: string(c.args)}
	return approval.Ask(asked, c.asked.Question, r.a.o.Now().Add(r.a.o.AskFor))
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
		asked, ok := approval.Of(i)
		if !ok {
			if err := r.warn("resume_unknown", fmt.Sprintf("the question %s is not about a call: it is closed", prompt.Quoted(i.ID))); err != nil {
				return nil, err
			}
			continue
		}
		d := approval.Decide(i, r.in.Resume, r.a.o.Now())
		if d.Unread {
			if err := r.warn("resume_payload", fmt.Sprintf(`the answer to %s is not {"approved": true} or {"approved": false}`, prompt.Quoted(i.ID))); err != nil {
				return nil, err
			}
		}
		if d.Verdict == approval.Undecided {
			open = append(open, i)
			continue
		}
		added = true
		if err := r.obey(ctx, asked, d); err != nil {
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
		if err := r.warn("resume_unknown", fmt.Sprintf("nothing waits for an answer to %s: it is ignored", prompt.Quoted(e.InterruptID))); err != nil {
			return err
		}
	}
	return nil
}

// obey does with a call what was decided.
func (r *run) obey(ctx context.Context, asked approval.Call, d approval.Decision) error {
	c := &call{
		ToolCall: chat.ToolCall{ID: asked.ID, Type: "function", Function: chat.FunctionCall{Name: asked.Tool, Arguments: asked.Arguments}},
		args:     json.RawMessage(asked.Arguments),
	}
	if d.Verdict != approval.Approved {
		r.denied[c.key()] = true
		c.result = approval.Refusal(d)
	} else if r.do(ctx, c, true); c.asked != nil { // the policy has changed, and is not asked twice
		c.result, _ = prompt.ToolFailed(c.asked)
		c.asked = nil
	}
	return r.settle(ctx, asked.Message, []*call{c})
}
