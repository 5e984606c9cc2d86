package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/agent"
	"github.com/hutch-run/hutch/runtime/llm"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/script"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the agent is put together with has to fit.
var (
	_ agent.Turn  = (*session.Run)(nil)
	_ agent.Tools = (*registry.Registry)(nil)
	_ agent.Model = (*llm.OpenAI)(nil)
	_ agent.Model = (*script.Model)(nil)
	_ agent.Model = script.Echo{}
	_             = session.Outcome(agent.Outcome{})
)

// says is what a model does in one round.
type says func(ctx context.Context, r chat.Request, yield func(chat.Delta, error) bool)

// model does one thing after the other, and remembers what it was asked.
type model struct {
	rounds []says
	asked  []chat.Request
}

func (m *model) Stream(ctx context.Context, r chat.Request) iter.Seq2[chat.Delta, error] {
	return func(yield func(chat.Delta, error) bool) {
		m.asked = append(m.asked, r)
		if len(m.rounds) == 0 {
			yield(chat.Delta{}, errors.New("the model was asked once too often"))
			return
		}
		next := m.rounds[0]
		m.rounds = m.rounds[1:]
		next(ctx, r, yield)
	}
}

// deltas is a round of these pieces.
func deltas(all ...chat.Delta) says {
	return func(_ context.Context, _ chat.Request, yield func(chat.Delta, error) bool) {
		for _, d := range all {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func text(s string) says { return deltas(chat.Delta{Text: s}, chat.Delta{Stop: chat.StopEnd}) }

// calls is a round that calls tools: "id name {arguments}" each.
func calls(all ...string) says { return deltas(callDeltas(all...)...) }

func callDeltas(all ...string) (pieces []chat.Delta) {
	for i, c := range all {
		part := strings.SplitN(c, " ", 3)
		if len(part) < 3 {
			part = append(part, "")
		}
		pieces = append(pieces, chat.Delta{Call: &chat.CallDelta{Index: i, ID: part[0], Name: part[1], Arguments: part[2]}})
	}
	return append(pieces, chat.Delta{Stop: chat.StopCalls})
}

func fails(err error) says {
	return func(_ context.Context, _ chat.Request, yield func(chat.Delta, error) bool) { yield(chat.Delta{}, err) }
}

func times(n int, s says) (all []says) {
	for range n {
		all = append(all, s)
	}
	return all
}

// tools are what the server has: those whose names begin with "get" say that they only
// read.
type tools struct {
	mu   sync.Mutex
	have map[string]func(context.Context, tool.Call) (tool.Result, error)
	made []string // "name arguments", with "!" if a person allowed it
	by   []tool.Caller
}

func (s *tools) List(tool.Caller) (all []tool.Spec) {
	for name := range s.have {
		reads := strings.HasPrefix(name, "get")
		all = append(all, tool.Spec{Name: name, Description: "does " + name, InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &tool.Annotations{ReadOnlyHint: &reads}})
	}
	return all
}

func (s *tools) Call(ctx context.Context, by tool.Caller, c tool.Call) (tool.Result, error) {
	s.mu.Lock()
	mark := ""
	if c.Approved {
		mark = "!"
	}
	s.made, s.by = append(s.made, mark+c.Name+" "+string(c.Arguments)), append(s.by, by)
	do := s.have[c.Name]
	s.mu.Unlock()
	if do == nil {
		return tool.Result{}, tool.NotFound(c.Name)
	}
	return do(ctx, c)
}

// gives is a tool with one answer.
func gives(text string) func(context.Context, tool.Call) (tool.Result, error) {
	return func(context.Context, tool.Call) (tool.Result, error) { return tool.Text(text), nil }
}

func breaks(err error) func(context.Context, tool.Call) (tool.Result, error) {
	return func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, err }
}

// asks is a tool that waits for a person, and answers text when one allowed it.
func asks(text string) func(context.Context, tool.Call) (tool.Result, error) {
	return func(_ context.Context, c tool.Call) (tool.Result, error) {
		if !c.Approved {
			return tool.Result{}, &tool.AskError{Tool: c.Name}
		}
		return tool.Text(text), nil
	}
}

// A bench is all that a test of runs needs.
type bench struct {
	t     testing.TB
	model *model
	tools *tools
	store *sessiontest.Memory
	sql   session.Store // instead of store
	o     agent.Options
	so    session.Options
	keep  *session.Keeper
	agent *agent.Agent // nil is one of model, tools and o
	ids   int
}

func newBench(t testing.TB, rounds ...says) *bench {
	b := &bench{t: t, model: &model{rounds: rounds}, store: &sessiontest.Memory{}}
	b.tools = &tools{have: map[string]func(context.Context, tool.Call) (tool.Result, error){
		"get": gives("got"), "put": gives("done"),
	}}
	b.o.NewID = func() string { b.ids++; return fmt.Sprintf("m%d", b.ids) }
	t.Cleanup(b.restart)
	return b
}

// restart is what is left when the process has ended: the store.
func (b *bench) restart() {
	if b.keep != nil {
		if err := b.keep.Close(); err != nil {
			b.t.Error(err)
		}
		b.keep = nil
	}
}

func (b *bench) submit(run, said string, in agent.Input, client ...chat.Message) *session.Stream {
	b.t.Helper()
	a, err := b.agent, error(nil)
	if a == nil {
		a, err = agent.New(b.model, b.tools, b.o)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if b.keep == nil {
		var kept session.Store = b.store
		if b.sql != nil {
			kept = b.sql
		}
		if b.keep, err = session.Open(context.Background(), kept, b.so); err != nil {
			b.t.Fatal(err)
		}
	}
	if said != "" {
		client = append(client, chat.Message{ID: "u-" + run, Role: chat.User, Content: chat.Text(said)})
	}
	s, err := b.keep.Submit(context.Background(), session.Principal{Name: "ann"}, session.Input{Thread: "t", RunID: run, Agent: "a", State: in.State, Messages: client},
		func(ctx context.Context, r *session.Run) (session.Outcome, error) {
			in.Open, in.State = r.Waiting().Person, r.Thread().State
			out, err := a.Run(ctx, r, in)
			return session.Outcome(out), err
		})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// run runs one turn, and returns its events, which any client would take.
func (b *bench) run(run, said string, in agent.Input, client ...chat.Message) (all []event.Event) {
	b.t.Helper()
	s := b.submit(run, said, in, client...)
	defer s.Close()
	for {
		i, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.t.Fatal(err)
		}
		if i.Event != nil {
			all = append(all, i.Event)
		}
	}
	eventtest.Conforms(b.t, false, all...)
	return all
}

// turn is run, in short.
func (b *bench) turn(run, said string, in agent.Input, client ...chat.Message) string {
	b.t.Helper()
	return told(b.run(run, said, in, client...))
}

// told is events in short, one a line; the beginning of the run and what only opens and
// closes is left out.
func told(events []event.Event) string {
	var lines []string
	for _, e := range events {
		switch e := e.(type) {
		case event.StepStarted:
			lines = append(lines, "+"+e.StepName)
		case event.StepFinished:
			lines = append(lines, "-"+e.StepName)
		case event.TextMessageContent:
			lines = append(lines, e.MessageID+" says "+e.Delta)
		case event.ReasoningMessageContent:
			lines = append(lines, e.MessageID+" thinks "+e.Delta)
		case event.ToolCallStart:
			lines = append(lines, e.ParentMessageID+" calls "+e.ToolCallName+" as "+e.ToolCallID)
		case event.ToolCallArgs:
			lines = append(lines, e.ToolCallID+" with "+e.Delta)
		case event.ToolCallResult:
			lines = append(lines, e.MessageID+" = "+e.Content.String())
		case event.StateSnapshot:
			lines = append(lines, "state "+string(e.Snapshot))
		case event.StateDelta:
			b, _ := json.Marshal(e.Delta)
			lines = append(lines, "state changes "+string(b))
		case event.Custom:
			lines = append(lines, e.Name+" "+string(e.Value))
		case event.RunError:
			lines = append(lines, "ERROR "+e.Code+": "+e.Message)
		case event.RunFinished:
			line := "END " + string(e.Outcome.Type)
			if len(e.Outcome.PendingToolCallIDs) > 0 {
				line += fmt.Sprint(" ", e.Outcome.PendingToolCallIDs)
			}
			for _, i := range e.Outcome.Interrupts {
				line += " " + i.ID + " " + i.Message
			}
			lines = append(lines, line+string(e.Result))
		}
	}
	return strings.Join(lines, "\n")
}

func want(t testing.TB, what, got, wanted string) {
	t.Helper()
	if got = strings.TrimSpace(got); got != strings.TrimSpace(wanted) {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, strings.TrimSpace(wanted))
	}
}

// history is the thread as it is kept, one message a line.
func (b *bench) history() string {
	b.t.Helper()
	all, err := b.store.ThreadMessages(context.Background(), session.Ref{Owner: "ann", ID: "t"}, session.MessageQuery{Limit: 1000})
	if err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	for _, m := range all {
		lines = append(lines, shown(m.Message))
	}
	return strings.Join(lines, "\n")
}

func shown(m chat.Message) string {
	line := m.ID + " " + string(m.Role)
	if m.Incomplete {
		line += " incomplete"
	}
	if text := m.Content.String(); text != "" {
		line += ": " + text
	}
	for _, c := range m.ToolCalls {
		line += fmt.Sprintf(" [%s %s %s]", c.ID, c.Function.Name, c.Function.Arguments)
	}
	return line
}

func (b *bench) made() string { return strings.Join(b.tools.made, "\n") }

// S3-039, S3-040, C-37: what is streamed is what is kept, under the same ids; text that
// comes with calls is a message of its own, and their parent.
func TestE3_05_C_37_ATurnWithTools(t *testing.T) {
	b := newBench(t,
		deltas(slices.Concat([]chat.Delta{{Reasoning: "hm"}, {Text: "\n"}, {Text: "I "}, {Text: "look."}}, callDeltas(`c1 get {"a":1}`, `c2 put`))...),
		deltas(chat.Delta{Text: "It is so."}, chat.Delta{Stop: chat.StopEnd, Usage: &chat.Usage{Provider: "p", Model: "x", InputTokens: 3, OutputTokens: 2}}),
	)
	events := b.run("r", "hi", agent.Input{Caller: tool.Caller{Principal: "ann", RunID: "r"}})
	want(t, "events", told(events), strings.ReplaceAll(`
+round 1
m1:reasoning thinks hm
m1 says·
I·
m1 says look.
m1 calls get as c1
c1 with {"a":1}
m1 calls put as c2
c2 with {}
m1:c1:result = got
m1:c2:result = done
-round 1
+round 2
m2 says It is so.
-round 2
END success`, "·", " "))
	want(t, "history", b.history(), "u-r user: hi\nm1 assistant: \nI look. [c1 get {\"a\":1}] [c2 put {}]\nm1:c1:result tool: got\nm1:c2:result tool: done\nm2 assistant: It is so.")
	if b.tools.by[1] != (tool.Caller{Principal: "ann", RunID: "r", CallID: "c2"}) {
		t.Errorf("called by %+v", b.tools.by[1])
	}
	if end := events[len(events)-1].(event.RunFinished); len(end.Usage) != 1 || end.Usage[0].OutputTokens != 2 {
		t.Errorf("E3-23: usage is %+v", end.Usage)
	}
}

// E3-10: a round too many is an error with a code, after the last calls were answered.
func TestE3_10_RoundsAreBounded(t *testing.T) {
	for _, tt := range []struct{ most, rounds int }{{0, 16}, {1, 1}, {agent.MostToolRounds, 64}} {
		b := newBench(t)
		for i := range tt.rounds + 1 {
			b.model.rounds = append(b.model.rounds, calls(fmt.Sprintf(`c%d get {"n":%d}`, i, i)))
		}
		b.o.MaxToolRounds = tt.most
		out := b.turn("r", "hi", agent.Input{})
		if !strings.Contains(out, fmt.Sprintf("\nERROR max_tool_rounds: the model wanted to call tools after %d rounds", tt.rounds)) || len(b.tools.made) != tt.rounds {
			t.Errorf("at most %d: %d calls and\n%s", tt.most, len(b.tools.made), out)
		}
		if !strings.Contains(b.history(), fmt.Sprintf(`:c%d:result tool: {"error":{"code":"max_tool_rounds"`, tt.rounds)) {
			t.Errorf("the last call has no result:\n%s", b.history())
		}
	}
	b := newBench(t, calls("c1 get {}"), calls("c2 confirm {}", "c3 get {}"))
	b.o.MaxToolRounds = 1
	b.run("r", "hi", agent.Input{Functions: []event.Tool{{Name: "confirm"}}})
	if h := b.history(); strings.Contains(h, ":c2:result") || !strings.Contains(h, ":c3:result") {
		t.Errorf("a call of the client has a result, or one of the server has none:\n%s", h)
	}
	if _, err := agent.New(&model{}, &tools{}, agent.Options{MaxToolRounds: 65}); err == nil {
		t.Error("65 rounds are allowed")
	}
}

// S3-053: what options may be.
func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []agent.Options{
		{MaxToolRounds: -1}, {MaxAnswer: -1}, {MaxTokens: -1}, {MaxCost: -1}, {MaxCost: 1}, {MaxCost: math.NaN()}, {ResultBytes: -1}, {Parallel: -1},
		{Repeats: -1}, {AskFor: -time.Second}, {Price: agent.Price{Input: -1}}, {Price: agent.Price{Output: -1}}, {Price: agent.Price{CachedInput: -1}},
	} {
		if _, err := agent.New(&model{}, &tools{}, o); err == nil {
			t.Errorf("%+v is allowed", o)
		}
	}
}
