//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/worker/workertest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// process is hutch as a child, which gets signals as a user would send them.
type process struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stdout io.Reader // of startUnread
	stderr *bufio.Scanner
	errors io.Reader // what stderr reads
}

// prepared is hutch about to run in a folder that holds ./tools.
func prepared(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: &exec.Cmd{Path: self, Args: append([]string{"hutch"}, args...), Dir: dir}}
	p.Env = []string{workerEnv + "=" + workertest.Command(t)[0], "HUTCH_STATE=" + filepath.Join(dir, "state")}
	for _, entry := range os.Environ() {
		if strings.HasPrefix(entry, envLimit) { // what a test has set
			p.Env = append(p.Env, entry)
		}
	}
	if p.stdin, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	return p
}

// start runs hutch in a folder that holds ./tools.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := prepared(t, dir, args...)
	p.begin(t)
	return p
}

// begin starts what was prepared.
func (p *process) begin(t *testing.T) {
	t.Helper()
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stderr, p.errors = bufio.NewScanner(stderr), stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
}

// says waits for a line of standard error and returns its first group. A process
// that does not say it in good time is killed, which ends its output.
func (p *process) says(t *testing.T, pattern string) string {
	t.Helper()
	hangs := time.AfterFunc(patientFor, func() { _ = p.Process.Kill() })
	defer hangs.Stop()
	want := regexp.MustCompile(pattern)
	var seen []string
	for p.stderr.Scan() {
		seen = append(seen, p.stderr.Text())
		if m := want.FindStringSubmatch(p.stderr.Text()); m != nil {
			return m[len(m)-1]
		}
	}
	t.Fatalf("no line %s in\n%s", pattern, strings.Join(seen, "\n"))
	return ""
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// exit reads what is left and returns how the process ended.
func (p *process) exit(t *testing.T) *os.ProcessState {
	t.Helper()
	for p.stderr.Scan() {
		t.Log(p.stderr.Text())
	}
	_ = p.Wait() // the state says it better
	return p.ProcessState
}

func folderWith(t *testing.T, modules map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, body := range modules {
		if err := writeAtomic(filepath.Join(dir, "tools", name), body); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const saidEndless = `{"tools":[{"name":"e","description":"Never ends.","inputSchema":{"type":"object","properties":{}}}]}`

func TestServeEndsWithASignal(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := start(t, t.TempDir(), "serve", "--addr", "127.0.0.1:0")
		url := p.says(t, `^hutch: serving (http://127\.0\.0\.1:\d+)/mcp$`)
		p.says(t, `^hutch: modules: 0 ready; tools: 0$`)
		r, err := http.Get(url + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Body.Close(); err != nil {
			t.Fatal(err)
		}
		p.signal(t, s)
		if got := p.exit(t); got.ExitCode() != exitOK {
			t.Errorf("%v: %v", s, got)
		}
		if info, err := os.Stat(filepath.Join(p.Dir, "tools")); err != nil || !info.IsDir() {
			t.Errorf("./tools was not made: %v", err)
		}
	}
}

// The second signal does not wait for what the first one left running.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	module := loggingModule(saidEndless, "", "running", wasmForever)
	p := start(t, folderWith(t, map[string][]byte{"e.wasm": module}), "serve", "--addr", "127.0.0.1:0", "--log", "debug")
	url := p.says(t, `^hutch: serving (http://127\.0\.0\.1:\d+)/mcp$`)
	p.says(t, `^hutch: modules: 1 ready; tools: 1$`)
	called := launch(func() error {
		session, err := connectTo(t.Context(), url, func() {})
		if err == nil {
			_, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "e"})
			err = errors.Join(err, session.Close())
		}
		return err
	})
	p.says(t, `line=running`)
	p.signal(t, syscall.SIGINT)
	p.says(t, `msg=stopping`)
	ended := launch(func() error { p.exit(t); return nil })
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			running = false
		default:
			_ = p.Process.Signal(syscall.SIGINT) // it may be gone
		}
	}
	if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Errorf("ended with %v", p.ProcessState)
	}
	if err := <-called; err == nil {
		t.Error("the call got an answer")
	}
}

// A host that ends hutch with a signal while the pipe is open is obeyed.
func TestMCPEndsWithASignal(t *testing.T) {
	p := start(t, folderWith(t, map[string][]byte{"bad.wasm": nil}), "mcp")
	p.says(t, `level=WARN.*bad\.wasm`)
	p.signal(t, syscall.SIGTERM)
	if got := p.exit(t); got.ExitCode() != exitOK {
		t.Error(got)
	}
}

func TestInterruptCancelsACall(t *testing.T) {
	p := start(t, folderWith(t, map[string][]byte{"e.wasm": loggingModule(saidEndless, "", "running", wasmForever)}), "tools", "call", "e")
	p.says(t, `^hutch: e: running$`)
	p.signal(t, syscall.SIGINT)
	if got := p.exit(t); got.ExitCode() != exitInterrupted {
		t.Error(got)
	}
}

// noisyFolder holds one tool, hi, and so many files to warn of that the lines
// about them do not fit into a pipe, or into what hutch keeps for one.
func noisyFolder(t *testing.T) string {
	modules := map[string][]byte{"hi.wasm": greeter("hi", "hello")}
	for i := range 600 {
		modules[fmt.Sprintf("%0100d.wasm", i)] = nil
	}
	return folderWith(t, modules)
}

// startUnread starts hutch with a standard error that nobody reads. If it hangs, it is
// killed.
func startUnread(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := prepared(t, dir, args...)
	unread, stderr, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { must(t, unread.Close()) })
	p.Stderr = stderr
	p.stdout, err = p.StdoutPipe()
	must(t, err)
	must(t, p.Start())
	must(t, stderr.Close())
	hangs := time.AfterFunc(patientFor, func() { _ = p.Process.Kill() })
	t.Cleanup(func() { hangs.Stop() })
	return p
}

// ends holds that the process ends by itself with exitOK.
func (p *process) ends(t *testing.T) {
	t.Helper()
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// Nobody has to read what hutch mcp logs.
func TestMCPWithoutAReaderOfItsLog(t *testing.T) {
	p := startUnread(t, noisyFolder(t), "mcp", "--log", "debug")
	transport := &sdk.IOTransport{Reader: io.NopCloser(p.stdout), Writer: p.stdin}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	must(t, err)
	for range 300 {
		if got := callText(t, session, "hi"); got != "hello" {
			t.Fatalf("hi says %q", got)
		}
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	must(t, p.stdin.Close())
	p.ends(t)
}

// Nor what hutch serve does; a signal ends it all the same.
func TestServeWithoutAReaderOfItsLog(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	p := startUnread(t, noisyFolder(t), "serve", "--addr", addr, "--log", "debug")
	deadline := time.After(patientFor)
	for tick := time.Tick(20 * time.Millisecond); !answersReady(addr); {
		select {
		case <-tick:
		case <-deadline:
			t.Fatal("it does not get ready")
		}
	}
	session, err := connectTo(t.Context(), "http://"+addr, func() {})
	must(t, err)
	if got := callText(t, session, "hi"); got != "hello" {
		t.Errorf("hi says %q", got)
	}
	must(t, session.Close())
	p.signal(t, syscall.SIGTERM)
	p.ends(t)
}

func answersReady(addr string) bool {
	r, err := http.Get("http://" + addr + "/readyz")
	if err != nil {
		return false
	}
	return r.Body.Close() == nil && r.StatusCode == http.StatusOK
}
