// Package history says what a thread's messages become: with what a client sends, and for
// a model to read.
//
// [Client] brings the two sides of a conversation together by the ids of messages,
// [Repair] gives each call its one result, and a [Window] is the end of a long thread. It
// has no I/O; nothing in it may be used by several goroutines at once.
package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hutch-run/hutch/protocol/chat"
)

// ErrInvalid says that a message may not come from who sent it.
var ErrInvalid = errors.New("invalid input")

// Ignored is a message of an input that was left out, and why.
type Ignored struct{ ID, Why string }

// A Merge is what becomes of a thread's messages when a client has sent its own.
type Merge struct {
	// Same is how many of the thread's first messages stay as they are, where all of them
	// were compared. The others are dropped.
	Same int
	// Add are those that are added, in their order.
	Add []chat.Message
	// Ignored are those of the client that were left out.
	Ignored []Ignored
}

// A Client is who sends messages. Who is not trusted may say what users say, and answer
// the calls that were handed to it: no more.
type Client struct {
	Trusted bool
	// Open are the ids of the calls that may be answered.
	Open []string
}

// reconciler merges the input of one client into a thread.
type reconciler struct {
	trusted bool
	open    map[string]bool
	Merge
	seen map[string]bool
}

func (c Client) reconciler() *reconciler {
	r := &reconciler{trusted: c.Trusted, open: map[string]bool{}, seen: map[string]bool{}}
	for _, id := range c.Open {
		r.open[id] = true
	}
	return r
}

// refusal says why m, which the thread does not know, may not come from the client; ""
// if it may.
func (r *reconciler) refusal(m chat.Message) string {
	switch {
	case !m.MayHaveID():
		return "its id is one that the result of a call gets: give it another"
	case m.Role == chat.User:
		return ""
	case m.Role == chat.Tool && r.open[m.ToolCallID]:
		return ""
	case m.Role == chat.Tool:
		return fmt.Sprintf("it answers the call %s, which is not the client's to answer", quoted(m.ToolCallID))
	case !r.trusted:
		return fmt.Sprintf("a message of role %s, which clients are not trusted to write", m.Role)
	}
	return ""
}

// take adds a message to the history.
func (r *reconciler) take(m chat.Message) {
	if m.Role == chat.Tool {
		delete(r.open, m.ToolCallID)
	}
	if r.trusted {
		for _, call := range m.ToolCalls {
			r.open[call.ID] = true
		}
	}
	r.Add = append(r.Add, m)
}

// again reports whether a message of that id came before.
func (r *reconciler) again(id string) bool {
	before := r.seen[id]
	r.seen[id] = true
	return before
}

// Append adds the messages whose ids the thread does not know, in their order, and leaves
// those that it does. knows has a key for each id of the input that the thread knows.
func (c Client) Append(knows map[string]int64, input []chat.Message) Merge {
	r := c.reconciler()
	for _, m := range input {
		if _, known := knows[m.ID]; known || r.again(m.ID) {
			continue
		}
		if why := r.refusal(m); why != "" {
			r.Ignored = append(r.Ignored, Ignored{m.ID, why})
			continue
		}
		r.take(m)
	}
	return r.Merge
}

// Replace makes the input the history. stored is all that the thread has; what the server
// wrote stays as it wrote it. It returns [ErrInvalid] for a message that may not come from
// the client.
func (c Client) Replace(stored, input []chat.Message) (Merge, error) {
	r := c.reconciler()
	known := map[string]chat.Message{}
	for _, s := range stored {
		known[s.ID] = s
	}
	for i, m := range input {
		if r.again(m.ID) {
			continue
		}
		old, ok := known[m.ID]
		if !ok {
			if why := r.refusal(m); why != "" {
				return Merge{}, fmt.Errorf("%w: messages[%d], id %s: %s", ErrInvalid, i, quoted(m.ID), why)
			}
		} else if !r.trusted && (old.Role != chat.User || m.Role != chat.User) {
			m = old
		}
		r.take(m)
	}
	for r.Same < len(stored) && r.Same < len(r.Add) && equal(stored[r.Same], r.Add[r.Same]) {
		r.Same++
	}
	r.Add = r.Add[r.Same:]
	return r.Merge, nil
}

// equal reports whether two messages say the same.
func equal(a, b chat.Message) bool {
	a.Incomplete, b.Incomplete = false, false
	one, err1 := json.Marshal(a)
	two, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(one, two)
}

// quoted shows what came from outside, cut to a length.
func quoted(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "…"
	}
	return fmt.Sprintf("%q", s)
}
