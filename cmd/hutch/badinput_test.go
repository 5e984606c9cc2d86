//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// offering is something put into a tool folder, and the one line that hutch has
// for it. An … in a line stands for anything.
type offering struct {
	name string
	put  func(t *testing.T, path string)
	line string
}

// TestBadFiles puts everything that must not work into the folder of one server.
// Each thing is rejected in one clear line, and a good tool answers after each.
func TestBadFiles(t *testing.T) {
	s := startServe(t, func(cfg *Config) { cfg.Limits.Call.Wall = 2 * time.Second })
	defer s.end(t)
	session := s.withCanary(t)
	defer func() { closeSession(t, session) }()

	files, endless := badFiles(t), endlessFiles()
	for _, o := range files {
		o.put(t, filepath.Join(s.tools, o.name))
		s.rejects(t, session, o)
	}
	for _, o := range endless { // at once, since each takes its whole time
		o.put(t, filepath.Join(s.tools, o.name))
	}
	for _, o := range endless {
		s.rejects(t, session, o)
	}
	s.listsOnce(t, slices.Concat(files, endless))
}

// rejects holds that the server refuses what was offered, and goes on serving.
func (s *served) rejects(t *testing.T, session *sdk.ClientSession, o offering) {
	t.Helper()
	if m := s.awaitModule(t, o.name); m.Status != tool.Rejected || !fits(o.line, m.Reason) || len(m.Tools) > 0 {
		t.Errorf("%s: %s with %d tools: %s\nwant %s", o.name, m.Status, len(m.Tools), m.Reason, o.line)
	}
	if got := callText(t, session, "canary"); got != "alive" {
		t.Fatalf("after %s the canary says %q", o.name, got)
	}
}

// listsOnce holds that hutch tools list has one line for each offering.
func (s *served) listsOnce(t *testing.T, offerings []offering) {
	t.Helper()
	var out, said buffer
	p := scriptProgram()
	p.stdout, p.stderr, p.worker = &out, &said, workertest.Command(t)
	p.env = func(name string) string { return map[string]string{"HUTCH_LIMIT_TIMEOUT": "2s"}[name] }
	if code := run([]string{"hutch", "tools", "list", "--tools", s.tools, "--state", filepath.Join(t.TempDir(), "state")}, p); code != exitOK || said.Len() > 0 {
		t.Errorf("tools list: exit code %d, %s", code, said.String())
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(offerings)+1 || !strings.HasPrefix(lines[0], "canary ") {
		t.Errorf("%d lines for %d files:\n%s", len(lines), len(offerings)+1, out.String())
	}
	for _, o := range offerings {
		if !slices.ContainsFunc(lines, func(line string) bool {
			word := strings.Fields(line)
			return len(word) > 3 && word[0] == "-" && word[1] == o.name && word[2] == "rejected" && fits("…"+o.line, line)
		}) {
			t.Errorf("no line for %s in\n%s", o.name, out.String())
		}
	}
}

func badFiles(t *testing.T) []offering {
	outside := filepath.Join(t.TempDir(), "outside.wasm")
	if err := os.WriteFile(outside, greeter("outside", "got out"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("x"), 5<<20)
	schema := func(text string) []byte {
		spec := dialecttest.Spec("s")
		spec.InputSchema = json.RawMessage(text)
		return dialecttest.Module{Tools: []tool.Spec{spec}}.Bytes()
	}
	said := func(text string) []byte {
		return dialecttest.Module{Describe: []dialecttest.Step{dialecttest.Write(text)}}.Bytes()
	}
	files := []offering{
		{"text.wasm", holding([]byte("no module at all")), `pre-check: header: not a WebAssembly module: it starts with "no m" (at offset 0x0)`},
		{"empty.wasm", holding(nil), "pre-check: header: the file is empty (at offset 0x0)"},
		{"large.wasm", sparse(17 << 20), "17825792 bytes, at most 16777216"},
		{"pipe.wasm", pipe, "is a named pipe, not a regular file"},
		{"folder.wasm", folder, "is a directory, not a regular file"},
		{"leaves.wasm", linkTo(outside), "symlink leaves the folder"},
		{"dangling.wasm", linkTo("nowhere.wasm"), "symlink points nowhere"},
		{"twin.wasm", holding(greeter("canary", "not me")), `tool "canary" of twin.wasm is already offered by canary.wasm from …: rename or remove one of them, or give twin.wasm a prefix in the policy`},
		{"import.wasm", holding(dialecttest.Module{Imports: [][2]string{{"env", "open_file"}}}.Bytes()), `import "env"."open_file": unknown; a module may import …`},
		{"export.wasm", holding(dialecttest.Module{Omit: []string{"call"}}.Bytes()), `export "call" is missing`},
		{"wordy.wasm", holding(dialecttest.Module{Describe: []dialecttest.Step{dialecttest.Output(5 << 20)}}.Bytes()), "describe: limit: description: more than 262144 bytes; …"},
		{"wordy-manifest.wasm", holding(dialecttest.Module{Manifest: fmt.Appendf(nil, `{"tools":[{"name":"w","description":"%s"}]}`, big)}.Bytes()), `pre-check: custom section: "hutch.manifest" has 5242921 bytes, at most 262144 …`},
		{"latin1.wasm", holding(said("{\"tools\":[{\"name\":\"l\",\"description\":\"caf\xe9\",\"inputSchema\":{\"type\":\"object\"}}]}")), "describe: description: json: offset 40, at $: invalid UTF-8"},
		{"array.wasm", holding(schema(`{"type":"array"}`)), `describe: tool "s": inputSchema: type "array", allowed is "object"`},
		{"list.wasm", holding(schema(`[]`)), `describe: description: tool 1 ("s"): inputSchema is an array, want an object`},
		{"trap.wasm", holding(dialecttest.Module{Start: []dialecttest.Step{dialecttest.Trap()}}.Bytes()), "describe: trap: does not start: trapped: unreachable"},
		{"trap-initialize.wasm", holding(dialecttest.Module{Initialize: []dialecttest.Step{dialecttest.Trap()}}.Bytes()), "describe: trap: trapped: unreachable"},
	}
	for _, h := range wasmbintest.Fixtures() {
		if h.Reason != "" {
			files = append(files, offering{h.Name + ".wasm", holding(h.Bytes), "pre-check: …" + h.Reason + "…"})
		}
	}
	whole := goGuest(t)
	for n, line := range map[int]string{
		7: "pre-check: header: 4 bytes, but 3 bytes left (at offset 0x4)", 8: `export "describe" is missing`,
		9: "pre-check: … section: ends too early (at offset 0x9)", len(whole) / 3: "pre-check: … section: … bytes left (at offset 0x…)",
		len(whole) - 1: "pre-check: … section: … bytes left (at offset 0x…)",
	} {
		files = append(files, offering{fmt.Sprintf("cut-%d.wasm", n), holding(whole[:n]), line})
	}
	return files
}

// endlessFiles loop for ever when hutch asks what they are (D19).
func endlessFiles() []offering {
	const line = "describe: timeout: the call took longer than 2s, its limit (limits.timeout)"
	loop := []dialecttest.Step{dialecttest.Loop()}
	return []offering{
		{"describe.wasm", holding(dialecttest.Module{Describe: loop}.Bytes()), line},
		{"initialize.wasm", holding(dialecttest.Module{Initialize: loop}.Bytes()), line},
		{"start.wasm", holding(dialecttest.Module{Start: loop}.Bytes()), line},
	}
}

// goGuest is a shipped tool, built on the spot.
func goGuest(t *testing.T) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "text")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "../../guests/text")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	body, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func holding(body []byte) func(*testing.T, string) {
	return func(t *testing.T, path string) { must(t, writeAtomic(path, body)) }
}

func sparse(size int64) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		must(t, os.WriteFile(path, nil, 0o600))
		must(t, os.Truncate(path, size))
	}
}

func pipe(t *testing.T, path string)   { must(t, syscall.Mkfifo(path, 0o600)) }
func folder(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }

func linkTo(target string) func(*testing.T, string) {
	return func(t *testing.T, path string) { must(t, os.Symlink(target, path)) }
}

// TestBadCalls calls tools that misbehave once they are called. The caller gets
// one line each, and a good tool answers after each.
func TestBadCalls(t *testing.T) {
	s := startServe(t, func(cfg *Config) { cfg.Limits.Call.Wall = 2 * time.Second })
	defer s.end(t)
	session := s.withCanary(t)
	defer func() { closeSession(t, session) }()

	counts := dialecttest.Spec("counts")
	counts.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	answers := dialecttest.Spec("answers")
	answers.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	claimed := dialecttest.Import("hutch:host", "output_write", "ii", "i", 0, 100<<20)
	for _, c := range []struct {
		spec tool.Spec
		do   []dialecttest.Step
		want string
	}{
		{counts, nil, `invalid arguments for "counts": missing "n"`},
		{answers, []dialecttest.Step{dialecttest.Result(`{"content":[],"structuredContent":{"n":"one"}}`)}, `tool "answers" answered what it may not: structuredContent: "n": found string "one", allowed is integer`},
		{dialecttest.Spec("claims"), []dialecttest.Step{claimed}, `tool "claims" answered what it may not: result: nothing was written`},
		{dialecttest.Spec("writes"), []dialecttest.Step{dialecttest.Output(100 << 20)}, `tool "writes": result: more than 1048576 bytes (limits.output): ask for less`},
		{dialecttest.Spec("latin1"), []dialecttest.Step{dialecttest.Result("{\"content\":[{\"type\":\"text\",\"text\":\"caf\xe9\"}]}")}, `tool "latin1" answered what it may not: result: json: offset 38, at $: invalid UTF-8`},
		{dialecttest.Spec("says_no"), []dialecttest.Step{dialecttest.Fail(1, "no such thing")}, "no such thing"},
		{dialecttest.Spec("traps"), []dialecttest.Step{dialecttest.Trap()}, `tool "traps": trapped: unreachable: this tool cannot do it, use another`},
		{dialecttest.Spec("panics"), []dialecttest.Step{dialecttest.Print(2, "panic: index out of range\n"), dialecttest.Exit(2)}, `tool "panics": left with exit code 2`},
		{dialecttest.Spec("exits"), []dialecttest.Step{dialecttest.Exit(0)}, `tool "exits": left with exit code 0`},
		{dialecttest.Spec("recurses"), []dialecttest.Step{dialecttest.Recurse()}, `tool "recurses": stack overflow: calls are nested too deeply (the engine's stack limit): ask for less`},
		{dialecttest.Spec("loops"), []dialecttest.Step{dialecttest.Loop()}, `tool "loops": the call took longer than 2s, its limit (limits.timeout): …`},
		{dialecttest.Spec("multiplies"), []dialecttest.Step{dialecttest.Exponential()}, `tool "multiplies": the call took longer than 2s, its limit (limits.timeout): …`},
	} {
		s.drop(t, c.spec.Name+".wasm", dialecttest.Module{Tools: []tool.Spec{c.spec}, Do: c.do}.Bytes())
		if m := s.awaitModule(t, c.spec.Name+".wasm"); m.Status != tool.Ready {
			t.Fatalf("%s: %s: %s", c.spec.Name, m.Status, m.Reason)
		}
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: c.spec.Name, Arguments: map[string]any{}})
		if err != nil || !r.IsError || len(r.Content) != 1 {
			t.Fatalf("%s: %+v, %v", c.spec.Name, r, err)
		}
		if got := r.Content[0].(*sdk.TextContent).Text; !fits(c.want, got) || strings.Contains(got, "\n") {
			t.Errorf("%s: %s\nwant %s", c.spec.Name, got, c.want)
		}
		if got := callText(t, session, "canary"); got != "alive" {
			t.Fatalf("after %s the canary says %q", c.spec.Name, got)
		}
	}
}

// withCanary puts a good tool into the folder and returns a client of it.
func (s *served) withCanary(t *testing.T) *sdk.ClientSession {
	t.Helper()
	s.drop(t, "canary.wasm", greeter("canary", "alive"))
	if m := s.awaitModule(t, "canary.wasm"); m.Status != tool.Ready {
		t.Fatalf("%s: %s", m.Status, m.Reason)
	}
	session, _ := s.connect(t)
	return session
}

// buffer is a program's output.
type buffer struct{ bytes.Buffer }

func (*buffer) Close() error { return nil }

// fits reports whether text is pattern, in which … stands for anything.
func fits(pattern, text string) bool {
	parts := strings.Split(pattern, "…")
	for i, part := range parts {
		at := strings.Index(text, part)
		if i == 0 && at != 0 || at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return text == "" || parts[len(parts)-1] == ""
}
