//go:build unix

package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What serve does is in its log: one line for each module that comes, changes
// and goes, and for each call that breaks.
func TestServeLogsWhatHappens(t *testing.T) {
	dir := folderWith(t, map[string][]byte{"e.wasm": endlessModule(saidEndless)})
	t.Setenv("HUTCH_LIMIT_TIMEOUT", "100ms")
	p := start(t, dir, "serve", "--addr", "127.0.0.1:0")
	url := p.says(t, `^hutch: serving (http://127\.0\.0\.1:\d+)/mcp$`)
	p.says(t, `^hutch: modules: 1 ready; tools: 1$`)
	file, bad := filepath.Join(dir, "tools", "hi.wasm"), filepath.Join(dir, "tools", "bad.wasm")
	put := func(file string, body []byte) {
		if err := writeAtomic(file, body); err != nil {
			t.Fatal(err)
		}
	}
	put(file, versioned("1.0.0"))
	p.says(t, `level=INFO msg="module added" module=hi\.wasm folder=tools version="1\.0\.0 [0-9a-f]{12}" tools=hi status=ready$`)
	put(file, versioned("1.1.0"))
	p.says(t, `level=INFO msg="module replaced" module=hi\.wasm folder=tools from="1\.0\.0 [0-9a-f]{12}" to="1\.1\.0 [0-9a-f]{12}" tools=hi status=ready$`)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.says(t, `level=INFO msg="module removed" module=hi\.wasm folder=tools version="1\.1\.0 [0-9a-f]{12}" tools=hi$`)
	put(bad, []byte("broken"))
	p.says(t, `level=WARN msg="module rejected" module=bad\.wasm folder=tools status=rejected reason=`)
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	p.says(t, `level=INFO msg="module removed" module=bad\.wasm folder=tools status=rejected$`)

	session, err := connectTo(t.Context(), url, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "e", Arguments: map[string]any{"secret": "1"}}); err != nil {
		t.Fatal(err)
	}
	if got := p.says(t, `level=WARN msg="call failed" tool=e (status=timeout after=\d+ms reason="the call took longer than 100ms.*" request=\w+)$`); got == "" {
		t.Error("no status")
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	p.signal(t, syscall.SIGINT)
	p.exit(t)
}

func versioned(version string) []byte {
	return fixedModule(`{"tools":[{"name":"hi","description":"Says hi.","inputSchema":{"type":"object"}}],"version":"`+version+`"}`, `{"content":[]}`)
}

// Who starts hutch twice is told that it is hutch that has the address.
func TestServeTwice(t *testing.T) {
	p := start(t, t.TempDir(), "serve", "--addr", "127.0.0.1:0")
	addr := strings.TrimPrefix(p.says(t, `^hutch: serving (http://127\.0\.0\.1:\d+)/mcp$`), "http://")
	second := start(t, t.TempDir(), "serve", "--addr", addr)
	second.says(t, `^hutch: error: hutch already serves at http://`+addr+`/mcp$`)
	if got := second.exit(t); got.ExitCode() != exitFailed {
		t.Error(got)
	}
	found := checkAddress(t.Context(), patient{cfg: Config{Addr: addr}})
	if len(found) != 1 || found[0].Status != verdictOK || found[0].Found != "hutch already serves there: http://"+addr+"/mcp" {
		t.Errorf("doctor says %+v", found)
	}
	p.signal(t, syscall.SIGINT)
	p.exit(t)
}

// On a terminal the log looks like everything else that hutch says.
func TestSpokenLog(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(newSpoken(&voice{w: &b}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	log.Debug("nothing")
	log.Info("stopping")
	log.With("module", "a b").WithGroup("g").Warn("call\nfailed", "time", "now")
	log.Error("broke")
	if got, want := b.String(), "hutch: stopping\nhutch: warning: call; failed module=\"a b\" g.time=now\nhutch: error: broke\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGuestLinesAreSplit(t *testing.T) {
	var b bytes.Buffer
	say := &voice{w: &b}
	log := slog.New(newGuestLines(slog.DiscardHandler, say))
	log.Debug(guestMessage, "tool", "a", "line", "panic: oh\n\tmain.go:3\n")
	if got, want := b.String(), "hutch: a: panic: oh\nhutch: a:   main.go:3\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Of a panic's trace, who calls a tool by hand sees the tool's own frames.
func TestGuestTracesAreTheTools(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(newGuestLines(slog.DiscardHandler, &voice{w: &b}))
	for _, line := range []string{
		"goroutine 1 [running]:",
		"github.com/hutch-run/hutch/guests/sdk.Tool.call.func1()", " sdk/module.go:82 +0x9",
		"panic({0x1c1a0, 0x1a19b0})", " runtime/panic.go:860 +0x1c",
		"main.deep(...)", " main.go:50", " indented",
		"github.com/hutch-run/hutch/guests/sdk.exportCall()", " sdk/abi_wasip1.go:70 +0x7", " kept",
		"panic(ked) is a word", " kept",
	} {
		log.Debug(guestMessage, "tool", "a", "line", line)
	}
	want := "goroutine 1 [running]:\nmain.deep(...)\n main.go:50\n indented\n kept\npanic(ked) is a word\n kept\n"
	if got := strings.ReplaceAll(b.String(), "hutch: a: ", ""); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
