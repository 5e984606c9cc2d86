package tail

import (
	"runtime"
	"testing"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/history"
)

// A model may go to and fro between thinking and writing: what it wrote is put together
// again at the cost of its pieces, and not of their square. What is counted are bytes.
func TestPiecesAreCheap(t *testing.T) {
	const pieces, each = 20_000, 1 << 10 // bytes for a piece, ten times what it takes
	text := []event.Event{}
	call := []event.Event{event.ToolCallStart{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "m"}}
	for range pieces {
		text = append(text, event.TextMessageStart{MessageID: "m"}, event.TextMessageContent{MessageID: "m", Delta: "word "}, event.TextMessageEnd{MessageID: "m"})
		call = append(call, event.ToolCallArgs{ToolCallID: "c", Delta: "12345"})
	}
	for name, events := range map[string][]event.Event{"text": text, "call": call} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		all := Streamed(events, nil)
		runtime.ReadMemStats(&after)
		if len(all) != 1 || history.Size(all[0]) < 5*pieces {
			t.Errorf("%s: %d messages", name, len(all))
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > pieces*each {
			t.Errorf("%s: %d bytes for %d pieces, at most %d", name, took, pieces, pieces*each)
		}
	}
}
