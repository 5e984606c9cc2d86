package llm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"

	"github.com/hutch-run/hutch/protocol/chat"
)

// callIDs are the ids of the calls in a conversation. Some providers begin to count
// anew in each answer, and an id must lead to one call.
func callIDs(r chat.Request) map[string]bool {
	ids := map[string]bool{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			ids[c.ID] = true
		}
	}
	return ids
}

// A callList puts the pieces of an answer's calls together, as far as it takes to know
// which piece belongs to which: there are providers that leave out the index or the id,
// give all calls one index, send a call at once, or repeat its name in each piece.
type callList struct {
	o     *OpenAIOptions
	taken map[string]bool
	calls []*call
}

type call struct {
	index   int64 // on the wire; -1 if there is none
	wireID  string
	name    string
	told    bool   // its first delta was handed over
	pending []byte // arguments that were not
	size    int    // of all arguments, in bytes
	whole   wholeness
}

// add takes a piece, and returns what is to be handed over of its call, nil if nothing
// is yet.
func (l *callList) add(piece openai.ChatCompletionChunkChoiceDeltaToolCall) (*chat.CallDelta, error) {
	p := pieceOf(piece)
	at := l.find(p)
	if at < 0 {
		if at = len(l.calls); at == l.o.MaxCalls {
			return nil, fmt.Errorf("%w: more than %d calls of tools at once", chat.ErrLimit, l.o.MaxCalls)
		}
		l.calls = append(l.calls, &call{index: p.index, wireID: p.id})
	}
	c := l.calls[at]
	if c.size += len(p.text); c.size > l.o.MaxArguments {
		return nil, fmt.Errorf("%w: a call of a tool has arguments of more than %d bytes", chat.ErrLimit, l.o.MaxArguments)
	}
	c.pending = append(c.pending, p.text...)
	c.whole.see(p.text)
	c.wireID, c.name = cmp.Or(c.wireID, p.id), cmp.Or(c.name, p.name)
	return l.tell(at), nil
}

// A piece is what a chunk says of a call.
type piece struct {
	index          int64 // -1 if it has none
	id, name, text string
}

func pieceOf(wire openai.ChatCompletionChunkChoiceDeltaToolCall) piece {
	p := piece{-1, wire.ID, wire.Function.Name, wire.Function.Arguments}
	if wire.JSON.Index.Valid() && wire.Index >= 0 {
		p.index = wire.Index
	}
	if raw := wire.Function.JSON.Arguments.Raw(); strings.HasPrefix(raw, "{") { // an object instead of its text
		p.text = raw
	}
	return p
}

// find returns the call that a piece belongs to, -1 if it begins a new one.
func (l *callList) find(p piece) int {
	at := l.lookUp(p)
	if at < 0 || p.name == "" {
		return at
	}
	c := l.calls[at]
	switch {
	case p.id != "" && c.wireID != "":
		if p.id != c.wireID { // one index for all calls
			return -1
		}
	case c.name == "":
	case p.index < 0 && p.name != c.name, strings.TrimSpace(p.text) != "" && c.whole.is():
		return -1
	}
	return at
}

// lookUp returns the last call that a piece could continue: that of its id, unless they
// have two indices, else that of its index; without an index the last of all, unless
// it has a name and an id of its own.
func (l *callList) lookUp(p piece) int {
	for at, c := range slices.Backward(l.calls) {
		if p.id != "" && c.wireID == p.id && (p.index < 0 || c.index < 0 || p.index == c.index) {
			return at
		}
	}
	if p.index < 0 {
		if p.id != "" && p.name != "" {
			return -1
		}
		return len(l.calls) - 1
	}
	for at, c := range slices.Backward(l.calls) {
		if c.index == p.index {
			return at
		}
	}
	return -1
}

// wholeness follows JSON text piece by piece, to tell when an object is at its end.
type wholeness struct {
	depth             int
	begun             bool
	inString, escaped bool
}

func (w *wholeness) see(text string) {
	for _, c := range []byte(text) {
		switch {
		case w.escaped:
			w.escaped = false
		case c == '\\':
			w.escaped = w.inString
		case c == '"':
			w.inString = !w.inString
		case w.inString:
		case c == '{' || c == '[':
			w.depth++
			w.begun = true
		case c == '}' || c == ']':
			w.depth--
		}
	}
}

func (w *wholeness) is() bool { return w.begun && w.depth <= 0 && !w.inString }

// tell returns what was not handed over yet of a call whose name is known.
func (l *callList) tell(at int) *chat.CallDelta {
	c := l.calls[at]
	if c.name == "" {
		return nil
	}
	d := &chat.CallDelta{Index: at, Arguments: string(c.pending)}
	c.pending = c.pending[:0]
	if !c.told {
		c.told = true
		d.ID, d.Name = l.idFor(c.wireID), c.name
	} else if d.Arguments == "" {
		return nil
	}
	return d
}

// maxID is the longest id that is kept, in bytes: providers take 64 back at most.
const maxID = 64

// idFor returns an id that no other call has: that of the provider, if it will do.
func (l *callList) idFor(id string) string {
	for id == "" || len(id) > maxID || l.taken[id] || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		id = l.o.NewID()
	}
	l.taken[id] = true
	return id
}

// check reports a call that cannot be made.
func (l *callList) check() error {
	for _, c := range l.calls {
		if !c.told {
			return fmt.Errorf("%w: it calls a tool and does not say which", chat.ErrMalformed)
		}
	}
	return nil
}
