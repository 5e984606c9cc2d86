package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/tools/txtar"

	"github.com/hutch-run/hutch/protocol/rawjson"
)

// transcriptSeeds returns what is sent in each transcript.
func transcriptSeeds(f *testing.F, pattern string) [][]byte {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		f.Fatalf("no transcripts: %v", err)
	}
	var seeds [][]byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range txtar.Parse(data).Files {
			seeds = append(seeds, []byte(strings.Join(sent(part.Data), "\n")))
		}
	}
	return seeds
}

// What is refused is in testdata/stdio-garbage.txtar; these are the limits.
func TestMessageLimits(t *testing.T) {
	id := func(n int) string {
		return `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", n-2) + `","method":"ping"}`
	}
	deep := func(n int) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}}}`
	}
	for _, c := range []struct {
		name, in, want string
	}{
		{"id of 256 bytes", id(maxID), ""},
		{"id of 257 bytes", id(maxID + 1), "id: 257 bytes, at most 256"},
		{"largest number", `{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}`, ""},
		{"larger number", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, "an integer up to 2^53"},
		{"smallest number", `{"jsonrpc":"2.0","id":-9007199254740992,"method":"ping"}`, ""},
		{"arguments 64 deep", deep(rawjson.MaxDepth), ""},
		{"arguments 65 deep", deep(rawjson.MaxDepth + 1), "nested deeper than 66"},
	} {
		_, r := readMessage([]byte(c.in))
		if got := textOf(r); c.want == "" && r != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func textOf(r *refusal) string {
	if r == nil {
		return ""
	}
	return r.text
}

// FuzzMessage: what is let through, go-sdk reads as a message with the same
// method; what is refused has an answer that is one line of JSON.
func FuzzMessage(f *testing.F) {
	for _, seed := range transcriptSeeds(f, "testdata/*.txtar") {
		for line := range strings.Lines(string(seed)) {
			f.Add([]byte(line))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, refused := readMessage(raw)
		if refused != nil {
			answer := refused.answer(m.id, "")
			if err := rawjson.Check(answer, 4); err != nil || strings.ContainsRune(string(answer), '\n') {
				t.Fatalf("answer %s: %v", answer, err)
			}
			return
		}
		msg, err := jsonrpc.DecodeMessage(raw)
		if err != nil {
			t.Fatal(err)
		}
		switch msg := msg.(type) {
		case *jsonrpc.Request:
			if msg.Method != m.method || msg.IsCall() != (m.id != nil) {
				t.Fatalf("read as %+v, go-sdk reads %+v", m, msg)
			}
			if m.id != nil {
				if b, err := json.Marshal(msg.ID.Raw()); err != nil || !sameJSON(b, m.id) {
					t.Fatalf("id %s, go-sdk reads %s, %v", m.id, b, err)
				}
			}
		case *jsonrpc.Response:
			if m.method != "" {
				t.Fatalf("read as %+v, go-sdk reads a response", m)
			}
		}
	})
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}
