package cmd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// block is a fenced block of the README. The comment before it, which nobody
// sees in the rendered page, says what this test does with it: "run" runs it,
// "run inspector" runs it if the MCP inspector is installed, "prints" looks for
// each of its lines in what the block before it printed.
type block struct {
	mark, language, text string
	line                 int
}

var fence = regexp.MustCompile("(?ms)^(?:<!-- ([a-z ]+) -->\n)?```([a-z]*)\n(.*?)^```$")

func readmeBlocks(t *testing.T) (blocks []block) {
	t.Helper()
	body, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range fence.FindAllSubmatchIndex(body, -1) {
		part := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return string(body[at[2*i]:at[2*i+1]])
		}
		blocks = append(blocks, block{part(1), part(2), part(3), 1 + bytes.Count(body[:at[0]], []byte("\n"))})
	}
	return blocks
}

// TestReadmeMake holds that each make target in the README exists, and that no
// other command in it goes untested.
func TestReadmeMake(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := 0
	for _, b := range readmeBlocks(t) {
		if b.language != "sh" || b.mark != "" {
			continue
		}
		for command := range strings.Lines(b.text) {
			target, ok := strings.CutPrefix(strings.TrimSpace(command), "make ")
			if !ok {
				t.Errorf("README.md:%d: %q is neither make nor marked to be run", b.line, command)
				continue
			}
			targets++
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).Match(makefile) {
				t.Errorf("README.md:%d: no target %s in the Makefile", b.line, target)
			}
		}
	}
	if targets == 0 {
		t.Error("README.md: no make command found")
	}
}

// TestReadme types the README's commands into one shell, beside a server
// started as `make run` starts it.
func TestReadme(t *testing.T) {
	if shipped, err := filepath.Glob("../tools-wasm/*.wasm"); err != nil || len(shipped) == 0 {
		skipUnlessRequired(t, "the shipped tools are not built: make tools")
	}
	ctx := t.Context()
	dir := t.TempDir()
	buildHutch(ctx, t, filepath.Join(dir, "bin", "hutch"))
	addr := freeAddr(t)
	env := append(os.Environ(), "HUTCH_STATE="+filepath.Join(dir, "state"), "HUTCH_ADDR="+addr, "TMPDIR="+dir)
	startServer(ctx, t, dir, env, addr)

	outputs := runBlocks(ctx, t, dir, env, addr)
	var last string
	for _, b := range readmeBlocks(t) {
		switch b.mark {
		case "run", "run inspector":
			last = outputs[b.line]
		case "prints":
			for line := range strings.Lines(b.text) {
				if !strings.Contains(last, strings.TrimSpace(line)) {
					t.Errorf("README.md:%d: promises %q, got\n%s", b.line, line, last)
				}
			}
		}
	}
}

// runBlocks runs the marked blocks in one shell and returns what each printed,
// by its line.
func runBlocks(ctx context.Context, t *testing.T, dir string, env []string, addr string) map[int]string {
	t.Helper()
	const cut = "==> README.md:"
	script := "set -euo pipefail\n"
	if inspector := findInspector(t); inspector != "" {
		script += fmt.Sprintf("npx() { shift; %s \"$@\"; }\n", inspector)
	}
	for _, b := range readmeBlocks(t) {
		if b.mark == "run" || b.mark == "run inspector" && strings.Contains(script, "npx()") {
			script += fmt.Sprintf("echo '%s%d'\n%s\n", cut, b.line, strings.ReplaceAll(b.text, "127.0.0.1:8420", addr))
		}
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	outputs := map[int]string{}
	for _, part := range strings.Split(string(out), cut)[1:] {
		var line int
		if _, err := fmt.Sscan(part, &line); err != nil {
			t.Fatal(err)
		}
		outputs[line] = part
	}
	return outputs
}

// findInspector returns the command that stands for the inspector which npx
// would fetch: the pinned one of the conformance tests.
func findInspector(t *testing.T) string {
	t.Helper()
	modules, err := filepath.Abs("../testdata/conformance/mcp/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	node, cli := filepath.Join(modules, "node", "bin", "node"), filepath.Join(modules, ".bin", "mcp-inspector")
	for _, file := range []string{node, cli} {
		if _, err := os.Stat(file); err != nil {
			if os.Getenv("HUTCH_REQUIRE") == "all" {
				t.Fatalf("the MCP inspector is not installed: npm install in testdata/conformance/mcp: %v", err)
			}
			t.Log("left out: the commands for the MCP inspector, which is not installed")
			return ""
		}
	}
	return node + " " + cli
}

func buildHutch(ctx context.Context, t *testing.T, to string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", to, "./hutch")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// startServer starts hutch serve in dir and waits until it is ready. The end
// of the test stops it.
func startServer(ctx context.Context, t *testing.T, dir string, env []string, addr string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "bin", "hutch"), "serve")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &log, &log
	// As Ctrl-C does. The context of a test ends before its cleanups run.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("hutch serve ended with %v", err)
		}
		if t.Failed() {
			t.Logf("hutch serve said:\n%s", log.String())
		}
	})
	for ready := time.Tick(50 * time.Millisecond); ; {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("hutch serve ended: %v", err)
		case <-ctx.Done():
			t.Fatal("hutch serve did not become ready")
		case <-ready:
			if isReady(ctx, addr) {
				return
			}
		}
	}
}

func isReady(ctx context.Context, addr string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// freeAddr returns a loopback address that nobody listens on just now.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// skipUnlessRequired skips, or fails where everything must run.
func skipUnlessRequired(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("HUTCH_REQUIRE") == "all" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// TestReadmeMarks holds that a misspelt mark does not switch a command off.
func TestReadmeMarks(t *testing.T) {
	for _, b := range readmeBlocks(t) {
		if !slices.Contains([]string{"", "run", "run inspector", "prints"}, b.mark) {
			t.Errorf("README.md:%d: no such mark: %q", b.line, b.mark)
		}
	}
}
