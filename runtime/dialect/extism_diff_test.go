package dialect

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/extism/go-sdk" // what testdata/difftool is built with
)

// goBuild builds a program of testdata, for this machine or as a guest.
func goBuild(t testing.TB, name string, guest bool) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	args := []string{"build", "-o", out}
	env := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if guest {
		args = append(args, "-buildmode=c-shared")
		env = append(env, "GOOS=wasip1", "GOARCH=wasm")
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./testdata/"+name)...)
	cmd.Env = env
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", name, err, text)
	}
	return out
}

// side and answer are those of testdata/difftool.
type diffSide struct {
	Output     []byte
	Err, Class string
	Logs       []string
}

type diffCall struct {
	Tool      string            `json:"tool"`
	Arguments json.RawMessage   `json:"arguments"`
	Config    map[string]string `json:"config"`
}

// differ runs the calls in both hosts.
func differ(t *testing.T, calls []diffCall) []struct{ Ours, Reference diffSide } {
	t.Helper()
	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), goBuild(t, "difftool", false), goBuild(t, "pdkguest", true))
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("difftool: %v\n%s", err, stderr.Bytes())
	}
	var answers []struct{ Ours, Reference diffSide }
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(calls) {
		t.Fatalf("difftool: %d answers to %d calls, %v", len(answers), len(calls), err)
	}
	return answers
}

func TestSameAsExtismSDK(t *testing.T) {
	million, err := json.Marshal(map[string]string{"text": strings.Repeat("0123456789", 100_000)})
	if err != nil {
		t.Fatal(err)
	}
	type m = map[string]string
	tests := []struct {
		tool, arguments string
		config          m
		output          string // if not empty, what both shall say
		fails           bool
	}{
		{tool: "echo", arguments: `{"text":"hello ✓","big":9007199254740993}`},
		{tool: "echo", arguments: string(million)},
		{tool: "twice", arguments: `{"text":"second"}`, output: "second"},
		{tool: "binary", arguments: `{"n":3}`, output: "\x00\x07\x0e"},
		{tool: "binary", arguments: `{"n":100001}`},
		{tool: "binary", arguments: `{"n":0}`},
		{tool: "json", arguments: `{"text":"<&>","n":-1}`},
		{tool: "config", arguments: `{"text":"city"}`, config: m{"city": "Ulm", "x": "y"}, output: `"Ulm" true`},
		{tool: "config", arguments: `{"text":"none"}`, config: m{"city": "Ulm"}, output: `"" false`},
		{tool: "config", arguments: `{"text":"empty"}`, config: m{"empty": ""}, output: `"" false`},
		{tool: "config", arguments: `{"text":""}`, output: `"" false`},
		{tool: "vars", arguments: `{"text":"value","n":-5}`, output: `"" 0, "value" -5, "" -5`},
		{tool: "log", arguments: `{"text":"Grüße","n":3}`, output: "logged"},
		{tool: "memory", arguments: `{"text":"block","n":100}`, output: `"block" 0 0 0 0`},
		{tool: "churn", arguments: `{"n":3}`, output: "churned"},
		{tool: "empty", arguments: `{}`},
		{tool: "print", arguments: `{"text":"printed"}`},
		{tool: "sleep", arguments: `{"n":3}`},
		{tool: "error", arguments: `{"text":"went wrong","n":1}`, fails: true},
		{tool: "error", arguments: `{"text":"went wrong, returned 0","n":0}`, fails: true},
		{tool: "silent", arguments: `{"n":5}`, fails: true},
		{tool: "panic", arguments: `{"text":"aaah"}`, fails: true},
		{tool: "exit", arguments: `{"n":3}`, fails: true},
		{tool: "nope", arguments: `{}`, fails: true},
	}
	calls := make([]diffCall, len(tests))
	for i, tt := range tests {
		calls[i] = diffCall{tt.tool, json.RawMessage(tt.arguments), tt.config}
	}
	for i, a := range differ(t, calls) {
		tt := tests[i]
		name := tt.tool + " " + tt.arguments[:min(len(tt.arguments), 50)]
		switch {
		case !bytes.Equal(a.Ours.Output, a.Reference.Output):
			t.Errorf("%s: output differs: %.100q (%s), %.100q (%s)", name, a.Ours.Output, a.Ours.Err, a.Reference.Output, a.Reference.Err)
		case tt.output != "" && string(a.Ours.Output) != tt.output:
			t.Errorf("%s: output %.100q, want %q", name, a.Ours.Output, tt.output)
		case (a.Ours.Err != "") != tt.fails || (a.Reference.Err != "") != tt.fails:
			t.Errorf("%s: errors %q and %q", name, a.Ours.Err, a.Reference.Err)
		case a.Ours.Class == "guest" && a.Ours.Err != a.Reference.Err && tt.tool != "silent":
			t.Errorf("%s: error %q, want %q", name, a.Ours.Err, a.Reference.Err)
		case !slices.Equal(a.Ours.Logs, a.Reference.Logs):
			t.Errorf("%s: logs %q, want %q", name, a.Ours.Logs, a.Reference.Logs)
		}
	}
}
