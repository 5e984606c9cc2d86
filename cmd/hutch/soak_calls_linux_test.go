package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// goodCall is a call with its one right answer, as structured content.
type goodCall struct {
	tool      string
	arguments map[string]any
	want      string
	// check looks at the answer where there is more than one right one.
	check func(structured []byte) error
}

// good are the tools that must go on answering: own ones in the folder, and
// shipped ones.
type good struct {
	own     map[string][]byte // by file name
	modules int               // that are called, shipped ones included
	calls   []func(*rand.Rand) goodCall
}

// keepers are the calls that keep something, and find it again.
func (s *soaked) keepers() []func(*rand.Rand) goodCall {
	return []func(*rand.Rand) goodCall{s.keeps, s.finds}
}

func goodTools() good {
	return good{
		own: map[string][]byte{
			"good-echo.wasm":   dialecttest.Module{Tools: []tool.Spec{dialecttest.Spec("good_echo")}}.Bytes(),
			"good-steady.wasm": steady("0"),
			"good-keeper.wasm": keeperModule(),
		},
		modules: 5,
		calls: []func(*rand.Rand) goodCall{
			func(r *rand.Rand) goodCall {
				sent := fmt.Sprintf(`{"n":%d,"text":"%s"}`, r.Int32(), strings.Repeat("x", r.IntN(2000)))
				return goodCall{tool: "good_echo", arguments: object(sent), want: `{"method":"tools/call","params":{"name":"good_echo","arguments":` + sent + `}}`}
			},
			func(*rand.Rand) goodCall {
				return goodCall{tool: "good_steady", arguments: map[string]any{}, want: `{"is":"steady"}`}
			},
			hashCall,
			func(r *rand.Rand) goodCall {
				n := r.IntN(1 << 30)
				return goodCall{tool: "jq", arguments: object(fmt.Sprintf(`{"program":".a + 1","value":{"a":%d}}`, n)), want: fmt.Sprintf(`{"results":[%d],"truncated":false}`, n+1)}
			},
		},
	}
}

// steady is a version of a tool that answers the same in each.
func steady(version string) []byte {
	return dialecttest.Module{
		Tools: []tool.Spec{dialecttest.Spec("good_steady")}, Version: version,
		Do: []dialecttest.Step{dialecttest.Result(`{"content":[],"structuredContent":{"is":"steady"}}`)},
	}.Bytes()
}

func hashCall(r *rand.Rand) goodCall {
	text := fmt.Sprint(r.Uint64())
	sum := sha256.Sum256([]byte(text))
	want, _ := json.Marshal(map[string]any{"algorithm": "sha256", "hex": hex.EncodeToString(sum[:]), "base64": sum[:], "bytes": len(text)}) // of plain values
	return goodCall{tool: "hash_data", arguments: map[string]any{"data": text}, want: string(want)}
}

func object(text string) (o map[string]any) {
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	return o
}

// ready waits until each good tool answers, as it does once its code is compiled:
// on a crowded machine that takes longer than a call may.
func (g good) ready(t *testing.T, s *soaked) {
	t.Helper()
	session := s.connect(t)
	defer func() { closeSession(t, session) }()
	r := rand.New(rand.NewPCG(0, 0))
	late := time.After(4 * patientFor)
	for _, next := range g.calls {
		for err := next(r).make(t.Context(), session); err != nil; err = next(r).make(t.Context(), session) {
			select {
			case <-late:
				t.Fatal(err)
			default:
			}
		}
	}
}

// make makes the call and returns an error unless the answer is the right one.
func (c goodCall) make(ctx context.Context, session *sdk.ClientSession) error {
	r, err := session.CallTool(ctx, &sdk.CallToolParams{Name: c.tool, Arguments: c.arguments})
	if err != nil {
		return fmt.Errorf("%s: %w", c.tool, err)
	}
	got, err := json.Marshal(r.StructuredContent)
	if err != nil {
		return err
	}
	if c.check != nil && !r.IsError {
		return c.check(got)
	}
	if r.IsError || !sameJSON(got, json.RawMessage(c.want)) {
		return fmt.Errorf("%s: %s, want %s", c.tool, shownResult(r, got), c.want)
	}
	return nil
}

// callOf calls a tool that takes nothing.
func callOf(name string) *sdk.CallToolParams {
	return &sdk.CallToolParams{Name: name, Arguments: map[string]any{}}
}

func shownResult(r *sdk.CallToolResult, structured []byte) string {
	var texts []string
	for _, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return fmt.Sprintf("%.300s %.300s", strings.Join(texts, " "), structured)
}

// calls are what one client made.
type calls struct{ took []time.Duration }

// make makes good calls, at soakPace, until ctx ends. It says when it has made each
// once. The first that fails ends the soak.
func (c *calls) make(ctx context.Context, t *testing.T, s *soaked, g good, r *rand.Rand, warm func()) {
	session := s.connect(t)
	defer func() { closeSession(t, session) }()
	warm = sync.OnceFunc(warm)
	defer warm()
	for tick := time.Tick(soakPace); ctx.Err() == nil && !t.Failed(); <-tick {
		next := r.IntN(len(g.calls))
		if n := len(c.took); n < len(g.calls) {
			next = n
		} else {
			warm()
		}
		began := time.Now()
		// Not ctx: a call that began is always waited for.
		if err := g.calls[next](r).make(context.WithoutCancel(ctx), session); err != nil {
			t.Errorf("good call after %v: %v", time.Since(began), err)
			return
		}
		s.called.Add(1)
		c.took = append(c.took, time.Since(began))
	}
}

// wereEnough holds that there were enough calls, and says how long they took.
func wereEnough(t *testing.T, clients []calls) {
	t.Helper()
	var took []time.Duration
	for _, c := range clients {
		took = append(took, c.took...)
	}
	if len(took) < soakCalls && !t.Failed() {
		t.Errorf("%d good calls, at least %d", len(took), soakCalls)
	}
	if len(took) > 0 {
		slices.Sort(took)
		t.Logf("%d good calls: p50 %v, p99 %v, the slowest %v", len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	}
}
