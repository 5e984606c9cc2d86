package history

import (
	"slices"

	"github.com/hutch-run/hutch/protocol/chat"
)

// A Window is the end of a thread's messages, as far as a model is shown it.
type Window struct {
	messages []chat.Message
	sizes    []int64
	bytes    int64
	// The bounds of what is shown. Up to twice as much is held, so that cutting is seldom.
	mostMessages int
	mostBytes    int64
}

// NewWindow is an empty window that shows at most so many messages, and bytes of them.
func NewWindow(messages int, bytes int64) Window {
	return Window{mostMessages: messages, mostBytes: bytes}
}

// Messages are those that are held: at least what is shown. The slice is the window's own.
func (w *Window) Messages() []chat.Message { return w.messages }

// Bytes is about what they take in memory.
func (w *Window) Bytes() int64 { return w.bytes }

// Add adds a message, which becomes the last one.
func (w *Window) Add(m chat.Message) {
	bytes := Size(m)
	w.messages = append(w.messages, m)
	w.sizes = append(w.sizes, bytes)
	w.bytes += bytes
	if len(w.messages) > 2*w.mostMessages || w.bytes > 2*w.mostBytes {
		w.drop(w.cut())
	}
}

// cut is what a model does not see: all before at, but for the message asked, if that is
// not negative. So the bounds hold, and what it sees begins with a message of a user if one
// is there. In a turn that is larger than they allow, it sees what the user asked, and of
// what it did then the end, from a message with calls on. The last of those is always in it.
func (w *Window) cut() (asked, at int) {
	bytes := w.bytes
	for at < len(w.messages)-1 && (len(w.messages)-at > w.mostMessages || bytes > w.mostBytes) {
		bytes -= w.sizes[at]
		at++
	}
	if at == 0 {
		return -1, 0
	}
	for i := at; i < len(w.messages); i++ {
		if w.messages[i].Role == chat.User {
			return -1, i
		}
	}
	for asked = at - 1; asked >= 0 && w.messages[asked].Role != chat.User; asked-- {
	}
	return asked, w.whole(at)
}

// whole is at, or where the next message is that is no result of a call before; where there
// is none, the last one before.
func (w *Window) whole(at int) int {
	for i := at; i < len(w.messages); i++ {
		if w.messages[i].Role != chat.Tool {
			return i
		}
	}
	for at > 0 && w.messages[at].Role == chat.Tool {
		at--
	}
	return at
}

func (w *Window) drop(asked, at int) {
	w.messages, w.sizes = left(w.messages, asked, at), left(w.sizes, asked, at)
	w.bytes = 0
	for _, size := range w.sizes {
		w.bytes += size
	}
}

// left is a slice of its own: what stands at asked, if that is before at, and all from at on.
func left[T any](all []T, asked, at int) []T {
	if asked < 0 || asked >= at {
		return slices.Clone(all[at:])
	}
	return append([]T{all[asked]}, all[at:]...)
}

// With is what a model sees when more messages have been added: not the window's own.
func (w *Window) With(more []chat.Message) []chat.Message {
	all := *w
	all.messages, all.sizes = slices.Clip(w.messages), slices.Clip(w.sizes)
	for _, m := range more {
		all.Add(m)
	}
	asked, at := all.cut()
	return left(all.messages, asked, at)
}

// overhead is what a message or a part of one counts besides its bytes.
const overhead = 64

// Size is about what a message takes in memory and in front of a model.
func Size(m chat.Message) int64 {
	n := int64(2*overhead + len(m.Metadata) + len(m.EncryptedValue))
	for _, p := range m.Content.Parts() {
		n += int64(len(p.Text)) + overhead
		if p.Source != nil {
			n += int64(len(p.Source.Value))
		}
	}
	for _, call := range m.ToolCalls {
		n += int64(len(call.Function.Name)+len(call.Function.Arguments)) + overhead
	}
	return n
}
