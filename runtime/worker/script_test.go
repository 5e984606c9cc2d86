package worker

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// scripted is a module with a script, or skips the test.
func scripted(t *testing.T, text string) Module {
	t.Helper()
	engine, err := os.ReadFile(filepath.Join("..", "..", "cmd", "hutch", "javascript", "qjs.wasm"))
	switch {
	case err == nil:
	case os.Getenv("HUTCH_REQUIRE") == "all":
		t.Fatalf("run make javascript: %v", err)
	default:
		t.Skipf("run make javascript: %v", err)
	}
	wasm, err := dialect.WithScript(engine, "tool.js", text)
	if err != nil {
		t.Fatal(err)
	}
	return asModule("tool.wasm", wasm)
}

// A script in a jailed process does what one in this process does, and what it must
// not do ends its call alone.
func TestScriptsInWorkers(t *testing.T) {
	p := newReal(t, Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	m := scripted(t, `tool({ name: "t", description: "Does.", run({ how }) {
		log("how: " + how);
		if (how === "loop") for (;;);
		if (how === "ask") return kv.get("a");
		if (how === "file") return import("qjs:std").then((std) => String(std.open("/etc/passwd", "r")));
		if (how === "memory") for (let s = "x"; ; s += s);
		return how + new Date(0).toISOString();
	} });`)
	raw, err := p.Describe(t.Context(), m)
	if err != nil || !strings.HasPrefix(string(raw), `{"tools":[{"name":"t"`) {
		t.Fatalf("got %s, %v", raw, err)
	}
	call := func(how string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		in := tool("t", `{"how":"`+how+`"}`)
		in.Limits = abi.Limits{Fuel: 200_000_000, MemoryBytes: 16 << 20}
		in.Host = func(_ context.Context, r abi.Request) abi.Response {
			value, _ := json.Marshal(string(r.Op) + string(r.Body)) // strings always marshal
			inner, _ := json.Marshal(string(value))
			return abi.Response{Body: []byte(`{"found":true,"version":1,"value":` + string(inner) + `}`)}
		}
		var lines []string
		in.Log = func(_ abi.LogLevel, line string) { lines = append(lines, line) }
		body, _, err := p.Call(ctx, m, in)
		if len(lines) == 0 || lines[0] != "how: "+how {
			t.Errorf("%s: lines %q", how, lines)
		}
		return string(body), err
	}
	for how, want := range map[string]string{
		"date": `{"content":[{"type":"text","text":"date1970-01-01T00:00:00.000Z"}]}`,
		"ask":  `{"content":[{"type":"text","text":"kv_get{\"key\":\"a\"}"}]}`,
		"file": `{"content":[{"type":"text","text":"null"}]}`,
	} {
		for _, hostile := range []string{"loop", "memory"} {
			if body, err := call(hostile); !errors.Is(err, &abi.Failure{Class: abi.ClassLimit}) {
				t.Errorf("%s: got %s, %v", hostile, body, err)
			}
		}
		if got, err := call(how); err != nil || got != want {
			t.Errorf("%s: got %s, %v", how, got, err)
		}
	}
}

// Scripts of one engine are compiled once.
func TestScriptsShareCode(t *testing.T) {
	engine := dialecttest.Module{}.Bytes()
	want := CodeDigest(engine)
	for _, text := range []string{"one", "two"} {
		wasm, err := dialect.WithScript(engine, "tool.js", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := CodeDigest(wasm); got != want {
			t.Errorf("%s: code %s, want %s", text, got, want)
		}
	}
	if CodeDigest([]byte("a")) == CodeDigest([]byte("b")) {
		t.Error("what is no module shares code")
	}
}
