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

// cut is where what a model sees begins: so that the bounds hold, and with a message of
// a user if one is there. The last message is always in it.
func (w *Window) cut() int {
	at, bytes := 0, w.bytes
	for at < len(w.messages)-1 && (len(w.messages)-at > w.mostMessages || bytes > w.mostBytes) {
		bytes -= w.sizes[at]
		at++
	}
	if at == 0 {
		return 0
	}
	for i := at; i < len(w.messages); i++ {
		if w.messages[i].Role == chat.User {
			return i
		}
	}
	return at
}

func (w *Window) drop(n int) {
	for _, size := range w.sizes[:n] {
		w.bytes -= size
	}
	w.messages = slices.Clone(w.messages[n:])
	w.sizes = slices.Clone(w.sizes[n:])
}

// With is what a model sees when more messages have been added: not the window's own.
func (w *Window) With(more []chat.Message) []chat.Message {
	all := *w
	all.messages, all.sizes = slices.Clip(w.messages), slices.Clip(w.sizes)
	for _, m := range more {
		all.Add(m)
	}
	return all.messages[all.cut():]
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
