package session

import "github.com/hutch-run/hutch/protocol/event"

// push adds an item for the reader, unless it lags too far behind: then it is cut off.
func (s *Stream) push(i Item, size int) bool {
	if s.run != "" && s.run != i.RunID {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.th.k.o
	switch {
	case s.bytes+size > o.BufferBytes || s.bytes+size > littleLag && s.th.k.lag.Load() > o.LagBytes:
		s.why = ErrSlow
	case len(s.items) >= o.Buffer/2 && s.lengthen(i):
	case len(s.items) >= o.Buffer:
		s.why = ErrSlow
	default:
		s.items = append(s.items, i)
		s.lags(size)
	}
	s.signal()
	return s.why == nil
}

// littleLag is how many bytes every stream may lag behind, however much the others do.
const littleLag = 64 << 10

// lags notes that the stream lags behind by so many bytes more, or less. The caller has
// its lock.
func (s *Stream) lags(more int) {
	s.bytes += more
	s.th.k.lag.Add(int64(more))
}

// longestJoined is how long pieces become that are put together, in bytes.
const longestJoined = 4 << 10

// lengthen puts a piece behind the last one that waits, if both are of one text, and
// reports whether it did: an answer that comes all at once, as through a proxy that holds
// it back, has thousands. The caller has the lock.
func (s *Stream) lengthen(i Item) bool {
	if len(s.items) == 0 || i.Number != 0 {
		return false
	}
	last := &s.items[len(s.items)-1]
	if last.Number != 0 || last.RunID != i.RunID {
		return false
	}
	e, more := joined(last.Event, i.Event)
	if more == 0 {
		return false
	}
	last.Event = e
	s.lags(more)
	return true
}

// joined is one event that says what two say, and how many bytes the second has added; 0
// if they are no pieces of one text, or say more than that.
func joined(a, b event.Event) (e event.Event, more int) {
	one, two := pieceOf(a), pieceOf(b)
	if one.id == "" || one.of != two.of || one.text > longestJoined || one.more || two.more {
		return nil, 0
	}
	switch a := a.(type) {
	case event.TextMessageContent:
		a.Delta += b.(event.TextMessageContent).Delta
		e = a
	case event.ReasoningMessageContent:
		a.Delta += b.(event.ReasoningMessageContent).Delta
		e = a
	case event.ToolCallArgs:
		a.Delta += b.(event.ToolCallArgs).Delta
		e = a
	}
	return e, two.text
}

// A piece is what an event adds to a text.
type piece struct {
	of
	text int  // bytes
	more bool // it says more than that
}

// of is which text a piece is of; the zero one is none.
type of struct {
	kind         event.Type
	id, subagent string
}

func pieceOf(e event.Event) piece {
	say := func(id, delta string, o event.Owned) piece {
		return piece{of{e.Type(), id, o.SubagentRunID}, len(delta), o.RawEvent != nil || o.Metadata != nil}
	}
	switch e := e.(type) {
	case event.TextMessageContent:
		return say(e.MessageID, e.Delta, e.Owned)
	case event.ReasoningMessageContent:
		return say(e.MessageID, e.Delta, e.Owned)
	case event.ToolCallArgs:
		return say(e.ToolCallID, e.Delta, e.Owned)
	}
	return piece{}
}
