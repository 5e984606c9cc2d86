package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// What a model and tools say is shown at a terminal and does not act on it, as events too;
// elsewhere it is as it came.
func TestChatsShowNothingThatActsOnATerminal(t *testing.T) {
	const hostile = "a\u009b2J\u202eb\x1b]0;c\x07"
	for _, asJSON := range []bool{false, true} {
		for _, terminal := range []bool{false, true} {
			var out, said bytes.Buffer
			show := newChatShow(&out, &voice{w: &said}, false, asJSON)
			show.terminal = terminal
			for _, e := range []event.Event{
				event.TextMessageStart{MessageID: "m", Role: chat.Assistant}, event.TextMessageContent{MessageID: "m", Delta: hostile}, event.TextMessageEnd{MessageID: "m"},
				event.ToolCallStart{ToolCallID: "c", ToolCallName: "t" + hostile}, event.ToolCallArgs{ToolCallID: "c", Delta: hostile}, event.ToolCallEnd{ToolCallID: "c"},
				event.ToolCallResult{MessageID: "r", ToolCallID: "c", Content: chat.Text(hostile)},
				event.Custom{Name: "hutch.warning", Value: []byte(`{"message":"\u009b2J"}`)},
			} {
				must(t, show.event(e))
			}
			if acts := strings.ContainsAny(out.String(), "\u009b\u202e\x1b\x07"); acts == terminal {
				t.Errorf("json %v, terminal %v: %q", asJSON, terminal, out.String())
			}
			if strings.ContainsAny(said.String(), "\u009b\u202e\x1b\x07") || (said.Len() == 0) != asJSON {
				t.Errorf("json %v: said %q", asJSON, said.String())
			}
		}
	}
}
