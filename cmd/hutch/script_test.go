package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/owner"
	"github.com/hutch-run/hutch/runtime/store/storetest"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what commands print into the scripts")

// workerEnv tells the hutch of a script which program is its worker. The test
// binary may be built with the race detector, and a worker must not be.
const workerEnv = "HUTCH_TEST_SCRIPT_WORKER"

// raceEnv configures the race detector. Unless told otherwise it holds a program
// for a second when it ends, and the tests run hundreds of them.
const raceEnv, raceAtOnce = "GORACE", "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if os.Getenv(raceEnv) == "" {
		if err := os.Setenv(raceEnv, raceAtOnce); err != nil {
			panic(err)
		}
	}
	testscript.Main(suite{m}, map[string]func(){"hutch": func() { os.Exit(run(os.Args, scriptProgram())) }})
}

// suite removes the worker that tests built.
type suite struct{ m *testing.M }

func (s suite) Run() int {
	code := workertest.Main(s.m)
	if err := errors.Join(server.Close(), warm.close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// server is the one of PostgreSQL, started when a test first asks for it.
var server storetest.Server

// scriptProgram is the hutch of a script: nothing is shipped with it, so that a
// list is the same whether or not the tools were built.
func scriptProgram() program {
	none, err := toolswasm.Open(fstest.MapFS{})
	if err != nil {
		panic(err)
	}
	return program{
		name: "hutch", stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Getenv, environ: os.Environ,
		worker: []string{os.Getenv(workerEnv)}, shipped: none,
		typesAhead: true, // a script has no other way
	}
}

// TestScript runs testdata/script/*.txtar: what a user types, and what comes
// back. Besides testscript's own commands there are
//
//	exits CODE COMMAND...       run a command that ends with that exit code
//	module FILE SAID ANSWER     make a module whose texts are in two files
//	endless FILE SAID           make one whose call never ends
//	logging FILE SAID ANSWER    make one that logs "look: \x1b[31m" before it answers
//	stamp FILE MODULE SAID      write a description into a module, true or not
//	asking FILE OP BODY         make one that asks for an operation and says what it got;
//	                            of config_get the body is the key
//	unhex FILE DIGITS           make a file from hexadecimal digits
//	owned                       wait until a process owns the state folder
//	address                     have the URL of who owns it in $SERVED
//	database NAME FILE          make a database, whose URL is $NAME and whose password is $PASSWORD and in a file
//
// [javascript] holds where there is an engine for JavaScript, which make fetches, and
// [postgres] where there is a PostgreSQL.
// $UPSTREAM is a server on this machine that says what it was asked for.
func TestScript(t *testing.T) {
	command := workertest.Command(t)
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv(workerEnv, command[0])
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, ".state"))
			e.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
			e.Setenv("GOPROXY", "off") // whatever is built is built offline
			e.Setenv("GOTOOLCHAIN", "local")
			e.Setenv(raceEnv, os.Getenv(raceEnv))
			upstream := httptest.NewServer(http.HandlerFunc(sayBack))
			e.Defer(upstream.Close)
			e.Setenv("UPSTREAM", upstream.URL)
			return nil
		},
		Condition: func(name string) (bool, error) {
			var err error
			switch name {
			case "javascript":
				_, err = scriptEngine(javascript)
			case "postgres":
				_, err = server.Cluster()
			default:
				return false, fmt.Errorf("unknown condition %s", name)
			}
			return err == nil || os.Getenv("HUTCH_REQUIRE") == "all", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "module": cmdModule, "endless": cmdEndless, "logging": cmdLogging, "stamp": cmdStamp, "unhex": cmdUnhex, "owned": cmdOwned,
			"asking": cmdAsking, "starting": cmdStarting, "database": cmdDatabase, "address": cmdAddress,
		},
	})
}

func cmdExits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	found := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		found = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if found != want {
		ts.Fatalf("exit code %d, want %d", found, want)
	}
}

func cmdModule(ts *testscript.TestScript, _ bool, args []string) {
	said, answer := strings.TrimSpace(ts.ReadFile(args[1])), strings.TrimSpace(ts.ReadFile(args[2]))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), fixedModule(said, answer), 0o644))
}

func cmdEndless(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), endlessModule(strings.TrimSpace(ts.ReadFile(args[1]))), 0o644))
}

// endlessModule describes itself and then calls for ever.
func endlessModule(said string) []byte {
	return nativeModule(said, wasmWriter(0, len(said)), wasmName("\x00"+wasmForever+"\x00\x0b"))
}

// wasmForever is a loop that branches to itself.
const wasmForever = "\x03\x40\x0c\x00\x0b"

// sayBack answers as an API that wants a key, and counts in a header.
func sayBack(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Request-Id", time.Now().String())
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%s %s for %q", r.Method, r.URL.Path, r.Header.Get("Authorization"))
}

// cmdStarting writes a module that asks for its input as it starts, or for random
// numbers.
func cmdStarting(ts *testscript.TestScript, _ bool, args []string) {
	asks := map[string]dialecttest.Step{
		"input":  dialecttest.Import("hutch:host", "input_len", "", "i"),
		"random": dialecttest.Import("wasi_snapshot_preview1", "random_get", "ii", "i", 0, 8),
	}
	m := dialecttest.Module{Initialize: []dialecttest.Step{asks[args[1]]}}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), m.Bytes(), 0o644))
}

func cmdAsking(ts *testscript.TestScript, _ bool, args []string) {
	op := abi.Op(args[1])
	m := dialecttest.Module{Tools: []tool.Spec{dialecttest.Spec("ask")}, Do: []dialecttest.Step{dialecttest.Config(args[2])}}
	if op != abi.OpConfig {
		m.Requests = tool.Requests{op.Capability(): json.RawMessage(`[{"reason":"It asks."}]`), "secrets": json.RawMessage(`[{"reason":"It may."}]`)}
		m.Do = []dialecttest.Step{dialecttest.Op(op, 1, args[2])}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), m.Bytes(), 0o644))
}

func cmdUnhex(ts *testscript.TestScript, _ bool, args []string) {
	body, err := hex.DecodeString(strings.Join(args[1:], ""))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), body, 0o644))
}

func cmdOwned(ts *testscript.TestScript, _ bool, _ []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patientFor)
	defer cancel()
	for {
		_, err := owner.Dial(ctx, filepath.Join(ts.Getenv("XDG_STATE_HOME"), "hutch"))
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("nobody owns it: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func cmdAddress(ts *testscript.TestScript, _ bool, _ []string) {
	var info owner.Info
	ts.Check(askOwner(context.Background(), state{filepath.Join(ts.Getenv("XDG_STATE_HOME"), "hutch")}, aboutPath, &info))
	ts.Setenv("SERVED", schemeOf(info.TLS)+info.Addr)
}

func cmdDatabase(ts *testscript.TestScript, _ bool, args []string) {
	c, err := server.Cluster()
	ts.Check(err)
	address, err := c.Database(context.Background())
	ts.Check(err)
	ts.Setenv(args[0], c.LoopbackURL(storetest.NameOf(address)))
	ts.Setenv("PASSWORD", c.Password)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(c.Password+"\n"), 0o600))
}

func cmdStamp(ts *testscript.TestScript, _ bool, args []string) {
	body, err := wasmbin.AppendCustom([]byte(ts.ReadFile(args[1])), abi.ManifestSection, []byte(strings.TrimSpace(ts.ReadFile(args[2]))))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), body, 0o644))
}

func cmdLogging(ts *testscript.TestScript, _ bool, args []string) {
	said, answer := strings.TrimSpace(ts.ReadFile(args[1])), strings.TrimSpace(ts.ReadFile(args[2]))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), loggingModule(said, answer, "look: \x1b[31m", ""), 0o644))
}

// loggingModule is fixedModule that also imports log, as function 1, and calls
// it with level info and then runs what then says.
func loggingModule(said, answer, line, then string) []byte {
	log := "\x41\x02\x41" + wasmInt(len(said+answer)) + "\x41" + wasmInt(len(line)) + "\x10\x01"
	write := "\x41" + wasmInt(len(said)) + "\x41" + wasmInt(len(answer)) + "\x10\x00"
	host := func(name, kind string) string { return wasmName("hutch:host") + wasmName(name) + "\x00" + kind }
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		wasmSection(1, wasmList("\x60\x02\x7f\x7f\x01\x7f", "\x60\x00\x01\x7f", "\x60\x03\x7f\x7f\x7f\x00")),
		wasmSection(2, wasmList(host("output_write", "\x00"), host("log", "\x02"))),
		wasmSection(3, wasmList("\x01", "\x01")),
		wasmSection(5, wasmList("\x00\x01")),
		wasmSection(7, wasmList(wasmName("memory")+"\x02\x00", wasmName("describe")+"\x00\x02", wasmName("call")+"\x00\x03")),
		wasmSection(10, wasmList(wasmWriter(0, len(said)), wasmName("\x00"+log+then+write+"\x0b"))),
		wasmSection(11, wasmList("\x00\x41\x00\x0b"+wasmName(said+answer+line))),
	)
}
