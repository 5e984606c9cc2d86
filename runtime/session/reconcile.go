package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/chat"
)

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

// Ignored is a message of an input that was left out, and why.
type Ignored struct{ ID, Why string }

// merge is what becomes of a thread's messages when a run begins.
type merge struct {
	dropFrom int64
	add      []chat.Message
	ignored  []Ignored
}

// reconciler merges the input of one client into a thread. Who is not trusted may say
// what users say, and answer the calls that were handed to it: no more.
type reconciler struct {
	trusted bool
	// open are the calls that may be answered.
	open map[string]bool
	merge
	seen map[string]bool
}

func newReconciler(open []string, trusted bool) *reconciler {
	r := &reconciler{trusted: trusted, open: map[string]bool{}, seen: map[string]bool{}}
	for _, id := range open {
		r.open[id] = true
	}
	return r
}

// refusal says why m, which the thread does not know, may not come from the client; ""
// if it may.
func (r *reconciler) refusal(m chat.Message) string {
	switch {
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
	r.add = append(r.add, m)
}

// again reports whether a message of that id came before.
func (r *reconciler) again(id string) bool {
	before := r.seen[id]
	r.seen[id] = true
	return before
}

// appendTo merges in the mode [Append].
func (r *reconciler) appendTo(knows map[string]int64, input []chat.Message) merge {
	for _, m := range input {
		if _, known := knows[m.ID]; known || r.again(m.ID) {
			continue
		}
		if why := r.refusal(m); why != "" {
			r.ignored = append(r.ignored, Ignored{m.ID, why})
			continue
		}
		r.take(m)
	}
	return r.merge
}

// replace merges in the mode [Replace]: stored is all that the thread has.
func (r *reconciler) replace(stored []Stored, input []chat.Message) (merge, error) {
	known := map[string]chat.Message{}
	for _, s := range stored {
		known[s.ID] = s.Message
	}
	for i, m := range input {
		if r.again(m.ID) {
			continue
		}
		old, ok := known[m.ID]
		if !ok {
			if why := r.refusal(m); why != "" {
				return merge{}, fmt.Errorf("%w: messages[%d], id %s: %s", ErrInvalid, i, quoted(m.ID), why)
			}
		} else if !r.trusted && (old.Role != chat.User || m.Role != chat.User) {
			m = old
		}
		r.take(m)
	}
	same := 0
	for same < len(stored) && same < len(r.add) && equal(stored[same].Message, r.add[same]) {
		same++
	}
	if same < len(stored) {
		r.dropFrom = stored[same].Number
	}
	r.add = r.add[same:]
	return r.merge, nil
}

// equal reports whether two messages say the same.
func equal(a, b chat.Message) bool {
	a.Incomplete, b.Incomplete = false, false
	one, err1 := json.Marshal(a)
	two, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(one, two)
}

// maxID is the longest id of a thread, a run, a message or a call, in bytes.
const maxID = 512

func checkID(what, id string) error {
	switch {
	case id == "" || len(id) > maxID:
		return fmt.Errorf("%w: %s of %d bytes, allowed are 1 to %d", ErrInvalid, what, len(id), maxID)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: %s that is not UTF-8", ErrInvalid, what)
	case bytes.IndexByte([]byte(id), 0) >= 0:
		return fmt.Errorf("%w: %s with a zero byte", ErrInvalid, what)
	}
	return nil
}

// roles are those that a message which is kept may have.
func roles() []chat.Role {
	return []chat.Role{chat.Developer, chat.System, chat.User, chat.Assistant, chat.Tool, chat.Reasoning}
}

// checkMessage holds a message to what can be kept. Of it nothing else is trusted later.
func checkMessage(m chat.Message, most int) error {
	if err := checkID("id of a message", m.ID); err != nil {
		return err
	}
	if !slices.Contains(roles(), m.Role) {
		return fmt.Errorf("%w: message %s of role %s, allowed are %v", ErrInvalid, quoted(m.ID), quoted(string(m.Role)), roles())
	}
	if m.Role == chat.Tool {
		if err := checkID("toolCallId of "+quoted(m.ID), m.ToolCallID); err != nil {
			return err
		}
	}
	if len(m.ToolCalls) > 0 && m.Role != chat.Assistant {
		return fmt.Errorf("%w: message %s of role %s has toolCalls, only an assistant's may", ErrInvalid, quoted(m.ID), m.Role)
	}
	for _, call := range m.ToolCalls {
		if err := checkID("id of a call in "+quoted(m.ID), call.ID); err != nil {
			return err
		}
	}
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("%w: message %s: %w", ErrInvalid, quoted(m.ID), err)
	}
	if len(body) > most {
		return fmt.Errorf("%w: message %s of %d bytes, at most %d", ErrLimit, quoted(m.ID), len(body), most)
	}
	return nil
}

// quoted shows what came from outside, cut to a length.
func quoted(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "…"
	}
	return fmt.Sprintf("%q", s)
}
