package cmd_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program is hutch as a user has it: built, with the shipped tools in it, in a
// folder of its own that is also HOME.
type program struct {
	dir  string // holds bin/hutch
	addr string // where serve listens
	env  []string
}

// newProgram builds hutch without the race detector, which its workers would
// not get anywhere with.
func newProgram(t *testing.T) program {
	t.Helper()
	if shipped, err := filepath.Glob("../tools-wasm/*.wasm"); err != nil || len(shipped) == 0 {
		skipUnlessRequired(t, "the shipped tools are not built: make tools")
	}
	p := program{dir: t.TempDir(), addr: freeAddr(t)}
	p.env = append(goEnv(t), "HOME="+p.dir, "TMPDIR="+p.dir, "HUTCH_ADDR="+p.addr)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", p.binary(), "./hutch")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return p
}

func (p program) binary() string { return filepath.Join(p.dir, "bin", "hutch") }

// command is a command of whatever kind, where hutch is.
func (p program) command(t *testing.T, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// serve starts hutch serve and waits until it is ready. The end of the test
// stops it.
func (p program) serve(t *testing.T) {
	t.Helper()
	var log bytes.Buffer
	cmd := p.command(t, p.binary(), "serve")
	cmd.Stdout, cmd.Stderr = &log, &log
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
	for tick := time.Tick(50 * time.Millisecond); !p.isReady(t); <-tick {
		select {
		case err := <-ended:
			ended <- err
			t.Fatal("hutch serve did not start")
		default:
		}
	}
}

func (p program) isReady(t *testing.T) bool {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.addr+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// goEnv is this process's environment, in which the go command works with
// another HOME as it does with this one.
func goEnv(t *testing.T) []string {
	t.Helper()
	names := []string{"GOCACHE", "GOMODCACHE"}
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	env := os.Environ()
	for i, value := range strings.Fields(string(out)) {
		env = append(env, names[i]+"="+value)
	}
	return env
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

// mcpClients returns the node that the pinned MCP clients run on, and the
// folder they are in; ok is false if they are not installed.
func mcpClients(t *testing.T) (node, folder string, ok bool) {
	t.Helper()
	folder, err := filepath.Abs("../testdata/conformance/mcp")
	if err != nil {
		t.Fatal(err)
	}
	node = filepath.Join(folder, "node_modules", "node", "bin", "node")
	_, err = os.Stat(node)
	if err != nil && required() {
		t.Fatal("the MCP clients are not there: npm install in testdata/conformance/mcp")
	}
	return node, folder, err == nil
}

const inspector = "node_modules/.bin/mcp-inspector"

// required reports whether a test must fail where it would skip.
func required() bool { return os.Getenv("HUTCH_REQUIRE") == "all" }

func skipUnlessRequired(t *testing.T, why string) {
	t.Helper()
	if required() {
		t.Fatal(why)
	}
	t.Skip(why)
}
