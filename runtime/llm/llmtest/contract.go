package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
)

// A Model answers one turn after the other.
type Model interface {
	Stream(ctx context.Context, r chat.Request) iter.Seq2[chat.Delta, error]
}

// A Subject makes models that do what a case of the contract needs. A nil field is what
// the kind of model cannot do.
type Subject struct {
	// Say returns a model that answers a user who says text with the same text, so many
	// times.
	Say func(t *testing.T, text string, turns int) Model
	// Call returns a model that makes these calls, so many times.
	Call func(t *testing.T, calls []chat.FunctionCall, turns int) Model
	// Fail returns a model that says "some", and then fails.
	Fail func(t *testing.T) Model
	// Slow returns a model that says nothing for a minute. It runs in a bubble.
	Slow func(t *testing.T) Model
}

// Contract holds a kind of model to what an agent relies on.
func Contract(t *testing.T, s Subject) {
	t.Run("says", func(t *testing.T) { says(t, s) })
	t.Run("says it again", func(t *testing.T) { saysAgain(t, s) })
	t.Run("is left early", func(t *testing.T) { isLeft(t, s) })
	t.Run("serves several", func(t *testing.T) { servesSeveral(t, s) })
	t.Run("takes no turn that was cancelled", func(t *testing.T) { cancelled(t, s) })
	if s.Call != nil {
		t.Run("calls", func(t *testing.T) { calls(t, s) })
		t.Run("names each call anew", func(t *testing.T) { namesAnew(t, s) })
	}
	if s.Fail != nil {
		t.Run("fails last", func(t *testing.T) { failsLast(t, s) })
	}
	if s.Slow != nil {
		t.Run("waits no longer than it may", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { waits(t, s) }) })
	}
}

// Ask is a request in which a user says text.
func Ask(text string) chat.Request {
	return chat.Request{Model: "fake-1", Messages: []chat.Message{{ID: "m1", Role: chat.User, Content: chat.Text(text)}}}
}

// A Turn is what a model answered.
type Turn struct {
	Text, Reasoning string
	Calls           []chat.ToolCall
	Stop            chat.Stop
	Usage           *chat.Usage
	Deltas          int
	Err             error
}

// Take ranges over a turn and reports what is no answer: a delta that is two things or
// nothing, a call that does not begin with its name, anything behind the end.
func Take(t testing.TB, seq iter.Seq2[chat.Delta, error]) (got Turn) {
	t.Helper()
	for d, err := range seq {
		if got.Stop != "" || got.Err != nil {
			t.Errorf("%+v, %v behind the end", d, err)
		}
		if err != nil {
			got.Err = err
			if d != (chat.Delta{}) {
				t.Errorf("%+v beside the error %v", d, err)
			}
			continue
		}
		got.Deltas++
		got.take(t, d)
	}
	if got.Stop == "" && got.Err == nil {
		t.Error("neither a stop nor an error at the end")
	}
	return got
}

// String is the turn on one line: <thoughts>text|tool(arguments) why-it-stopped in+out.
func (got Turn) String() string {
	var b strings.Builder
	if got.Reasoning != "" {
		fmt.Fprintf(&b, "<%s>", got.Reasoning)
	}
	b.WriteString(got.Text)
	for _, c := range got.Calls {
		fmt.Fprintf(&b, "|%s(%s)", c.Function.Name, c.Function.Arguments)
	}
	fmt.Fprintf(&b, " %s", got.Stop)
	if got.Usage != nil {
		fmt.Fprintf(&b, " %d+%d", got.Usage.InputTokens, got.Usage.OutputTokens)
	}
	return b.String()
}

func (got *Turn) take(t testing.TB, d chat.Delta) {
	t.Helper()
	set := 0
	for _, is := range []bool{d.Text != "", d.Reasoning != "", d.Call != nil, d.Stop != "" || d.Usage != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		t.Errorf("a delta with %d things in it: %+v", set, d)
	}
	got.Text += d.Text
	got.Reasoning += d.Reasoning
	got.Stop, got.Usage = d.Stop, d.Usage
	if d.Call != nil {
		got.takeCall(t, *d.Call)
	}
}

func (got *Turn) takeCall(t testing.TB, c chat.CallDelta) {
	t.Helper()
	switch {
	case c.Index == len(got.Calls) && c.ID != "" && c.Name != "":
		got.Calls = append(got.Calls, chat.ToolCall{ID: c.ID, Type: "function", Function: chat.FunctionCall{Name: c.Name}})
	case c.Index < 0 || c.Index >= len(got.Calls) || c.ID != "" || c.Name != "":
		t.Errorf("%+v neither begins call %d nor continues one before", c, len(got.Calls))
		return
	}
	got.Calls[c.Index].Function.Arguments += c.Arguments
}

func says(t *testing.T, s Subject) {
	for _, text := range []string{"", "hello", " two  words\n\nand lines ", "привет 👩‍👩‍👧 мир", `{"not": "a call"}`, strings.Repeat("long ", 20_000)} {
		got := Take(t, s.Say(t, text, 1).Stream(t.Context(), Ask(text)))
		if got.Text != text || got.Stop != chat.StopEnd || got.Err != nil || len(got.Calls) > 0 {
			t.Errorf("%.40q: said %.40q in %d deltas, stop %q, %d calls, %v", text, got.Text, got.Deltas, got.Stop, len(got.Calls), got.Err)
		}
	}
}

// saysAgain ranges twice over one sequence, and looks at what became of the request.
func saysAgain(t *testing.T, s Subject) {
	request := Ask("once more")
	before := encode(request)
	turn := s.Say(t, "once more", 2).Stream(t.Context(), request)
	for range 2 {
		if got := Take(t, turn); got.Text != "once more" || got.Err != nil {
			t.Errorf("said %q, %v", got.Text, got.Err)
		}
	}
	if after := encode(request); after != before {
		t.Errorf("the request is now %s", after)
	}
}

func isLeft(t *testing.T, s Subject) {
	model := s.Say(t, "several words to be left early", 1)
	for d, err := range model.Stream(t.Context(), Ask("several words to be left early")) {
		if err != nil || d.Text == "" {
			t.Errorf("%+v, %v", d, err)
		}
		break
	}
}

func servesSeveral(t *testing.T, s Subject) {
	const several = 8
	model := s.Say(t, "to all of you", several)
	var wg sync.WaitGroup
	for range several {
		wg.Go(func() {
			if got := Take(t, model.Stream(t.Context(), Ask("to all of you"))); got.Text != "to all of you" || got.Err != nil {
				t.Errorf("said %q, %v", got.Text, got.Err)
			}
		})
	}
	wg.Wait()
}

func cancelled(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Take(t, s.Say(t, "too late", 0).Stream(ctx, Ask("too late"))); !errors.Is(got.Err, context.Canceled) || got.Deltas > 0 {
		t.Errorf("%d deltas, %v", got.Deltas, got.Err)
	}
}

func calls(t *testing.T, s Subject) {
	for _, want := range [][]chat.FunctionCall{
		{{Name: "now", Arguments: `{}`}},
		{{Name: "add", Arguments: `{"a":1,"b":[2,{"c":"} \" {"}]}`}},
		{{Name: "a", Arguments: `{"n":1}`}, {Name: "b", Arguments: `{"я":"ё"}`}, {Name: "a", Arguments: `{"n":2}`}},
	} {
		got := Take(t, s.Call(t, want, 1).Stream(t.Context(), Ask("go")))
		if got.Stop != chat.StopCalls || got.Err != nil {
			t.Errorf("%v: stop %q, %v", want, got.Stop, got.Err)
		}
		ids, made := map[string]bool{}, []chat.FunctionCall(nil)
		for _, c := range got.Calls {
			ids[c.ID] = true
			made = append(made, c.Function)
		}
		if !sameCalls(made, want) || len(ids) != len(want) {
			t.Errorf("made %v with %d ids, want %v", made, len(ids), want)
		}
	}
}

// sameCalls compares arguments as JSON: a model of ours may write it in its own way.
func sameCalls(a, b []chat.FunctionCall) bool {
	return reflect.DeepEqual(parsed(a), parsed(b))
}

func parsed(calls []chat.FunctionCall) (all []any) {
	for _, c := range calls {
		var arguments any
		if err := json.Unmarshal([]byte(c.Arguments), &arguments); err != nil {
			arguments = err.Error()
		}
		all = append(all, c.Name, arguments)
	}
	return all
}

// namesAnew asks again with the first turn in the conversation, as an agent does.
func namesAnew(t *testing.T, s Subject) {
	model := s.Call(t, []chat.FunctionCall{{Name: "now", Arguments: `{}`}}, 3)
	request, ids := Ask("go"), map[string]bool{}
	for turn := range 3 {
		got := Take(t, model.Stream(t.Context(), request))
		if len(got.Calls) != 1 {
			t.Fatalf("turn %d: %d calls, %v", turn, len(got.Calls), got.Err)
		}
		id := got.Calls[0].ID
		ids[id] = true
		request.Messages = append(request.Messages,
			chat.Message{ID: fmt.Sprint("a", turn), Role: chat.Assistant, ToolCalls: got.Calls},
			chat.Message{ID: fmt.Sprint("t", turn), Role: chat.Tool, ToolCallID: id, Content: chat.Text("noon")},
			chat.Message{ID: fmt.Sprint("u", turn), Role: chat.User, Content: chat.Text("go")})
	}
	if len(ids) != 3 {
		t.Errorf("3 calls with %d ids: %v", len(ids), ids)
	}
}

func failsLast(t *testing.T, s Subject) {
	got := Take(t, s.Fail(t).Stream(t.Context(), Ask("go")))
	known := false
	for _, is := range []error{chat.ErrCut, chat.ErrLimit, chat.ErrMalformed, chat.ErrOverflow, chat.ErrRefused, chat.ErrTimeout, chat.ErrUnavailable} {
		known = known || errors.Is(got.Err, is)
	}
	if got.Text != "some" || !known || strings.Contains(got.Err.Error(), "\n") {
		t.Errorf("said %q, then %v", got.Text, got.Err)
	}
}

func waits(t *testing.T, s Subject) {
	model := s.Slow(t)
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got := Take(t, model.Stream(ctx, Ask("go")))
	if took := time.Since(begin); !errors.Is(got.Err, context.DeadlineExceeded) || took != 10*time.Second {
		t.Errorf("after %v: %v", took, got.Err)
	}
}
