package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/agent"
	"github.com/hutch-run/hutch/runtime/script"
	"github.com/hutch-run/hutch/runtime/session"
)

// played answers at once, in pieces of a word each.
func played(b *testing.B) *script.Model {
	b.Helper()
	s, err := script.Parse("bench.yaml", []byte(`
- match: {tool: get}
  say: "There are ${result} of them, which is what was asked for."
- match: {text: count}
  call: {tool: get, args: {text: "${text}"}}
- say: "This is an answer of about as many words as people get from a model that was told to be brief, and no more than that."
`))
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// manyTools are what an agent with a full folder is offered.
type manyTools []tool.Spec

func (m manyTools) List(tool.Caller) []tool.Spec { return m }

func (manyTools) Call(context.Context, tool.Caller, tool.Call) (tool.Result, error) {
	return tool.Text("2"), nil
}

func benchTools() (all manyTools) {
	reads := true
	schema := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	for i := range 40 {
		all = append(all, tool.Spec{Name: fmt.Sprintf("tool_%d", i), Description: "does something", InputSchema: schema})
	}
	return append(all, tool.Spec{Name: "get", InputSchema: schema, Annotations: &tool.Annotations{ReadOnlyHint: &reads}})
}

// A turn without its commits: at most 1 ms is aimed at.
func BenchmarkTurn(b *testing.B) {
	for _, bb := range []struct {
		name, said string
		before     int // messages
	}{{"text", "hi", 0}, {"text/history=200", "hi", 199}, {"tool", "count", 0}} {
		b.Run(bb.name, func(b *testing.B) {
			a, err := agent.New(played(b), benchTools(), agent.Options{Instructions: "Be brief."})
			if err != nil {
				b.Fatal(err)
			}
			var history []chat.Message
			for i := range bb.before {
				role := []chat.Role{chat.User, chat.Assistant}[i%2]
				history = append(history, chat.Message{ID: fmt.Sprint(i), Role: role, Content: chat.Text("something that was said before")})
			}
			history = append(history, chat.Message{ID: "u", Role: chat.User, Content: chat.Text(bb.said)})
			b.ReportAllocs()
			for b.Loop() {
				turn := &fakeTurn{messages: history[:len(history):len(history)]}
				if _, err := a.Run(context.Background(), turn, agent.Input{}); err != nil {
					b.Fatal(err)
				}
				if last := turn.messages[len(turn.messages)-1]; last.Role != chat.Assistant {
					b.Fatalf("ended with %s", shown(last))
				}
			}
		})
	}
}

// A turn with its stream, through a keeper that has no store.
func BenchmarkStreamedTurn(b *testing.B) {
	s := newBench(b)
	var err error
	if s.agent, err = agent.New(played(b), benchTools(), agent.Options{Instructions: "Be brief."}); err != nil {
		b.Fatal(err)
	}
	if s.keep, err = session.Open(context.Background(), nil, session.Options{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		stream := s.submit(fmt.Sprint("r", n), "hi", agent.Input{})
		for {
			if _, err := stream.Next(context.Background()); err != nil {
				break
			}
		}
		stream.Close()
	}
}
