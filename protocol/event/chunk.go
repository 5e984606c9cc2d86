package event

import "fmt"

// A piece is one chunk, of any kind.
type piece struct {
	kind  kind
	id    string // empty goes on with the one before
	delta string
	owned Owned
	start Event // what begins it, if it is a first one
}

// continues reports whether a chunk goes on with what is written; an empty id does.
func (g *guard) continues(k kind, id string) bool {
	return g.chunk != nil && g.chunk.kind == k && (id == "" || id == g.chunk.id)
}

// chunked returns the events that a chunk stands for. What it says besides its text is
// in the first of them.
func (g *guard) chunked(p piece) ([]Event, error) {
	var out []Event
	owned := p.owned
	if !g.continues(p.kind, p.id) {
		if p.id == "" {
			return nil, fmt.Errorf("a chunk of a %s without an id, and none is open", p.kind)
		}
		out = g.endChunk()
		started, err := g.rule(p.start)
		if err != nil {
			return out, err
		}
		out = append(out, started...)
		g.chunk = &entity{kind: p.kind, id: p.id}
		owned.Base = Base{}
	}
	if p.delta == "" {
		return out, nil
	}
	content, err := g.rule(g.chunk.content(p.delta, owned))
	return append(out, content...), err
}

func (one entity) content(delta string, owned Owned) Event {
	switch one.kind {
	case message:
		return TextMessageContent{MessageID: one.id, Delta: delta, Owned: owned}
	case call:
		return ToolCallArgs{ToolCallID: one.id, Delta: delta, Owned: owned}
	}
	return ReasoningMessageContent{MessageID: one.id, Delta: delta, Owned: owned}
}

// endChunk ends what chunks write.
func (g *guard) endChunk() []Event {
	if g.chunk == nil {
		return nil
	}
	one := *g.chunk
	g.chunk = nil
	for i := range g.open {
		if g.open[i] == one {
			g.open = append(g.open[:i:i], g.open[i+1:]...)
			return []Event{one.end()}
		}
	}
	return nil
}
