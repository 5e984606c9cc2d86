package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

const guestsFolder = "../../guests"

// What is shipped is these modules with these tools, and each answers as its
// example calls say, with nothing granted and what was recorded for them.
func TestShippedModules(t *testing.T) {
	tools := map[string][]string{
		"fetch.wasm":    {"fetch"},
		"httpjson.wasm": {"http_json"},
		"notes.wasm":    {"note_add", "note_list", "note_get", "note_search", "note_remove"},
		"tasks.wasm": {"list_tasks", "get_task", "create_task", "update_task", "take_task", "reject_task", "assign_task", "watch_task",
			"unwatch_task"},
		"steps.wasm":    {"list_steps", "add_step", "complete_step", "update_step"},
		"messages.wasm": {"send_message", "list_messages", "reply_message", "add_comment", "list_comments", "read_messages"},
		"projects.wasm": {"list_projects", "get_project"},
		"members.wasm":  {"list_members", "get_member", "update_my_status"},
		"files.wasm":    {"upload_file", "list_files", "download_file"},
		"dates.wasm":    {"date_convert", "date_add", "date_diff"},
		"hash.wasm":     {"hash_data", "encode_data", "decode_data"},
		"jq.wasm":       {"jq"},
		"markdown.wasm": {"markdown_to_html"},
		"tables.wasm":   {"csv_to_json", "json_to_csv", "csv_to_markdown"},
		"text.wasm":     {"text_stats", "text_diff"},
	}
	set, err := toolswasm.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Modules()) == 0 {
		skipUnlessRequired(t, "no module is built: make tools")
	}
	var names []string
	for _, m := range set.Modules() {
		names = append(names, m.Name)
	}
	if want := slices.Sorted(maps.Keys(tools)); !slices.Equal(names, want) {
		t.Errorf("shipped: %q, want %q", names, want)
	}
	bench := testBench(t)
	for _, m := range set.Modules() {
		t.Run(m.Name, func(t *testing.T) {
			body, err := set.Fetch(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			folder := filepath.Join(guestsFolder, strings.TrimSuffix(m.Name, moduleSuffix))
			replayModule(t, bench, source{name: m.Name, body: body}, folder, tools[m.Name])
		})
	}
}

func TestExampleModules(t *testing.T) {
	bench := testBench(t)
	for name, tools := range map[string][]string{"greet": {"greet"}, "pdk-echo": {"pdk_echo"}, "c-upper": {"c_upper"}, "weather": {"weather_now"}} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(guestsFolder, "examples", name)
			replayModule(t, bench, exampleModule(t, folder), folder, tools)
		})
	}
}

// What a Go tool does at first, it has done before a call: encoding/json knows its
// types. It burned 1,150,000 units without.
func TestGoToolsBeginWarm(t *testing.T) {
	const most = 600_000
	bench, folder := testBench(t), filepath.Join(guestsFolder, "examples", "greet")
	src := exampleModule(t, folder)
	on, err := bench.stageFor(t.Context(), program{}, &src, false)
	must(t, err)
	defer func() { must(t, on.Close()) }()
	tools, m, err := bench.mount(t.Context(), src.name, src.body, on.options())
	must(t, err)
	defer func() { must(t, tools.Close()) }()
	must(t, on.open(t.Context(), m))
	r, err := tools.Call(t.Context(), tool.Caller{}, tool.Call{Name: "greet", Arguments: json.RawMessage(`{"name":"World"}`)})
	must(t, err)
	if burned := r.Usage.Fuel; burned == 0 || burned > most {
		t.Errorf("a call burned %d units, want at most %d", burned, most)
	}
}

// exampleModule builds an example in Go, and takes one in another language from
// where make tools puts it.
func exampleModule(t *testing.T, folder string) source {
	t.Helper()
	arg := folder
	if _, err := os.Stat(filepath.Join(folder, "main.go")); errors.Is(err, fs.ErrNotExist) {
		arg = filepath.Join("../../bin/examples", filepath.Base(folder)+moduleSuffix)
	}
	src, err := sourceOf(arg)
	if err == nil {
		err = src.load(t.Context(), &voice{w: t.Output()})
	}
	if arg != folder && errors.Is(err, fs.ErrNotExist) {
		skipUnlessRequired(t, "it is not built: make tools, on a machine with clang and lld")
	}
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// replayModule mounts a module, holds it to having these tools and no warning
// about one, and makes its example calls.
func replayModule(t *testing.T, bench *workbench, src source, folder string, names []string) {
	t.Helper()
	on, err := bench.stageFor(t.Context(), program{}, &src, false)
	must(t, err)
	defer func() { must(t, on.Close()) }()
	tools, m, err := bench.mount(t.Context(), src.name, src.body, on.options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tools.Close(); err != nil {
			t.Error(err)
		}
	}()
	must(t, on.open(t.Context(), m))
	if found := namesOf(m); m.Status != tool.Ready || !slices.Equal(found, names) {
		t.Errorf("%s with tools %q, want ready with %q; %s", m.Status, found, names, m.Reason)
	}
	known := func(warning string) bool { // C-05 wants it, and it is optional
		return m.Name == "steps.wasm" && strings.HasSuffix(warning, "properties.step_id.type: several types, which some hosts refuse")
	}
	if warnings := slices.DeleteFunc(toolWarnings(m), known); len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
	calls, bad, err := readExamples(filepath.Join(folder, "testdata"))
	if err = errors.Join(append(bad, err)...); err != nil {
		t.Fatal(err)
	}
	checkBothKinds(t, calls, names)
	for _, call := range calls {
		r, err := on.perform(t.Context(), answersOf(filepath.Join(folder, "testdata"), call), call, tools)
		must(t, err)
		if !r.Passed {
			t.Errorf("%s: %s", r.File, strings.Join(r.Diff, "\n"))
		}
	}
}

func namesOf(m registry.Module) (names []string) {
	for _, t := range m.Tools {
		names = append(names, t.Published.Name)
	}
	return names
}

// checkBothKinds holds each tool to an example that works and one that fails.
func checkBothKinds(t *testing.T, calls []example, names []string) {
	t.Helper()
	for _, name := range names {
		for _, fails := range []bool{false, true} {
			is := func(e example) bool {
				return e.Tool == name && (e.Want.IsError != nil && *e.Want.IsError) == fails
			}
			if !slices.ContainsFunc(calls, is) {
				t.Errorf("%s has no example call with isError %t", name, fails)
			}
		}
	}
}

// A tool can be read at once: its definition, types and function are one file of
// at most a screen, with its tests beside it.
func TestToolsFitOnOneScreen(t *testing.T) {
	const screen = 60
	files, err := filepath.Glob(filepath.Join(guestsFolder, "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") || !bytes.Contains(body, []byte("= sdk.Define(")) {
			continue
		}
		found++
		if lines := bytes.Count(body, []byte("\n")); lines > screen {
			t.Errorf("%s has %d lines, at most %d: move what it leans on into a file beside it", file, lines, screen)
		}
		if _, err := os.Stat(strings.TrimSuffix(file, ".go") + "_test.go"); err != nil {
			t.Error(err)
		}
	}
	if found != 45 {
		t.Errorf("%d files define a tool, want 45", found)
	}
}

// testBench is a workbench with the limits that everybody has.
func testBench(t *testing.T) *workbench {
	t.Helper()
	limits, err := defaultLimits()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{State: filepath.Join(t.TempDir(), "state"), Limits: limits}
	bench, err := openWorkbench(cfg, program{worker: workertest.Command(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bench.Close(); err != nil {
			t.Error(err)
		}
	})
	return bench
}

// skipUnlessRequired skips, or fails where everything must be there.
func skipUnlessRequired(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("HUTCH_REQUIRE") == "all" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// shipping is a hutch that comes with one module, hash.wasm with the tool hash_data.
func shipping(t *testing.T) (program, []byte) {
	t.Helper()
	const said = `{"tools":[{"name":"hash_data","description":"Hashes.","inputSchema":{"type":"object","properties":{}}}]}`
	body, err := wasmbin.AppendCustom(greeter("hash_data", "x"), abi.ManifestSection, []byte(said))
	must(t, err)
	index := fmt.Sprintf(`[{"name":"hash.wasm","digest":%q,"size":%d}]`, digestOf(body), len(body))
	set, err := toolswasm.Open(fstest.MapFS{"index.json": {Data: []byte(index)}, "hash.wasm": {Data: body}})
	must(t, err)
	home := t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": home}[name] }
	return program{name: "hutch", stdout: unclosed{io.Discard}, stderr: unclosed{io.Discard}, env: env, environ: func() []string { return nil },
		worker: workertest.Command(t), shipped: set}, body
}

// Who makes a module is told at once that its names are taken.
func TestNamesOfShippedToolsAreReserved(t *testing.T) {
	p, shipped := shipping(t)
	t.Chdir(t.TempDir())
	for _, name := range []string{"hash_data", "hash-data", "hash"} {
		err := runCommand(t.Context(), []string{"hutch", "new", name}, p)
		if !errors.Is(err, errUsage) || hintOf(err) != "choose another name: hutch new my-"+name {
			t.Errorf("new %s: %v, hint %q", name, err, hintOf(err))
		}
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	bench := testBench(t)
	build := func(body []byte, out string) []string {
		t.Helper()
		must(t, os.WriteFile("in.wasm", body, 0o600))
		r, err := build(t.Context(), bench.cfg, p, &voice{w: io.Discard}, "in.wasm", out)
		must(t, err)
		return r.Warnings
	}
	own := build(greeter("hash_data", "y"), "hash.wasm")
	if want := []string{
		"a file named hash.wasm belongs to hutch and would not be served: choose another name",
		"tool hash_data belongs to hutch, so the module would not be served: choose another name",
	}; !slices.Equal(own, want) {
		t.Errorf("build: %q", own)
	}
	if free := build(greeter("hash_other", "y"), "free.wasm"); len(free) > 0 {
		t.Errorf("build with other names: %q", free)
	}
	names, err := p.reservedNames()
	must(t, err)
	itself := registry.Module{Digest: digestOf(shipped), Tools: []registry.Tool{{Published: tool.Spec{Name: "hash_data"}}}}
	if got := names.warnings("hash.wasm", itself); len(got) > 0 {
		t.Errorf("the module itself: %q", got)
	}
	var said bytes.Buffer
	must(t, os.WriteFile("mine.wasm", greeter("hash_data", "y"), 0o600))
	_, err = testModule(t.Context(), bench.cfg, p, &voice{w: &said}, "mine.wasm", testOptions{})
	if err != nil || said.String() != "hutch: warning: tool hash_data belongs to hutch, so the module would not be served: choose another name\n" {
		t.Errorf("test: %q, %v", said.String(), err)
	}
}
