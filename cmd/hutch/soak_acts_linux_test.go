package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// act is something done to the folder, which is left as it was. Its files and
// tools have its name in theirs, and the round's number.
type act struct {
	name string
	play func(h hand, round int)
}

// hand is one who is in the folder, and calls what is there.
type hand struct {
	*testing.T
	s       *soaked
	session *sdk.ClientSession
}

func (h hand) leave() { closeSession(h.T, h.session) }

func put(t *testing.T, s *soaked, name string, body []byte) {
	t.Helper()
	if err := writeAtomic(filepath.Join(s.tools, name), body); err != nil {
		t.Error(err)
	}
}

func (h hand) path(name string) string { return filepath.Join(h.s.tools, name) }

// ok fails the soak on an error that is not the server's.
func (h hand) ok(err error) {
	h.Helper()
	if err != nil {
		h.Error(err)
	}
}

// sees waits until the server has one of these verdicts of a file.
func (h hand) sees(name string, patterns ...string) string {
	h.Helper()
	got, err := h.s.log.verdict(name, patterns...)
	h.ok(err)
	return got
}

// calls holds that a call of a tool ends as one of these patterns say.
func (h hand) calls(name string, patterns ...string) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 2*patientFor)
	defer cancel()
	r, err := h.session.CallTool(ctx, callOf(name))
	if err != nil {
		h.Errorf("%s: %v", name, err)
		return
	}
	got := shownResult(r, nil)
	for _, p := range patterns {
		if fits(p+"…", got) {
			return
		}
	}
	h.Errorf("%s: %s, want %q", name, got, patterns)
}

// soakActs are all acts.
func soakActs(t *testing.T, seed uint64) (all []act) {
	t.Helper()
	raw := append(wasmbintest.Fixtures(), wasmbintest.Generated()...)
	for _, h := range wasmbintest.Tools() {
		if h.Reason == "" {
			all = append(all, toolAct(h))
		} else {
			raw = append(raw, wasmbintest.Hostile{Name: h.Name + "-tool", Bytes: h.Bytes("refused"), Reason: h.Reason})
		}
	}
	for i := range raw { // some are there twice, and acts may stand beside each other
		raw[i].Name = fmt.Sprint(i, "-", raw[i].Name)
	}
	for part := range slices.Chunk(raw, 10) {
		all = append(all, rawAct(part))
	}
	for _, o := range misbehaving() {
		all = append(all, callAct(o))
	}
	whole := goGuest(t)
	all = append(all, randomActs(t, seed)...)
	all = append(all, policyActs()...)
	all = append(all, act{"folder", playFolder}, act{"mass", playMass}, act{"steady", playSteady},
		damaged("small", 40, seed, steady("d")), damaged("go", 4, seed, whole), act{"large", playLarge})
	for i, a := range all {
		all[i].play = func(h hand, round int) { h.beside(a, round) }
	}
	return append(all, act{"frozen", playFrozen})
}

// beside plays an act that may have others beside it.
func (h hand) beside(a act, round int) {
	h.s.alone.RLock()
	defer h.s.alone.RUnlock()
	a.play(h, round)
}

// rawAct drops a few modules that the server refuses without a worker, puts
// something else in their place, renames that, puts them back and takes them away.
func rawAct(modules []wasmbintest.Hostile) act {
	return act{"raw, " + modules[0].Name + " and so on", func(h hand, round int) {
		file := func(m wasmbintest.Hostile, more string) string {
			return fmt.Sprintf("raw-%s-%d%s.wasm", m.Name, round, more)
		}
		refuses := func(more string) {
			for _, m := range modules {
				put(h.T, h.s, file(m, more), m.Bytes)
			}
			for _, m := range modules {
				want := "rejected: …" + m.Reason + "…"
				if m.Reason == "" {
					want = `rejected: export "describe" is missing`
				}
				h.sees(file(m, more), want)
			}
		}
		refuses("")
		for _, m := range modules {
			put(h.T, h.s, file(m, ""), []byte("no module at all"))
			h.ok(os.Rename(h.path(file(m, "")), h.path(file(m, "-renamed"))))
		}
		for _, m := range modules {
			h.sees(file(m, "-renamed"), "rejected: pre-check: header: not a WebAssembly module…")
		}
		refuses("-renamed")
		for _, m := range modules {
			h.ok(os.Remove(h.path(file(m, "-renamed"))))
		}
	}}
}

// endings are what is said to a caller, after the tool's name.
var endings = map[wasmbintest.Ending]string{
	wasmbintest.Returns:    "done",
	wasmbintest.OutOfTime:  `tool "%s": the call took longer than 5s, its limit (limits.timeout): `,
	wasmbintest.OutOfStack: `tool "%s": stack overflow: calls are nested too deeply (the engine's stack limit): ask for less`,
}

// toolAct drops a module that passes for a tool, calls it, and renames it.
func toolAct(m wasmbintest.Tool) act {
	return act{"tool " + m.Name, func(h hand, round int) {
		name := fmt.Sprintf("%s_%d", m.Name, round)
		file := name + ".wasm"
		put(h.T, h.s, file, m.Bytes(name))
		defer func() { h.ok(os.Remove(h.path(file))) }()
		if m.Ends == wasmbintest.NeverLoads {
			h.sees(file, "rejected: describe: timeout: …(limits.compile)…")
			return
		}
		h.sees(file, "ready")
		want := endings[m.Ends]
		if strings.Contains(want, "%s") {
			want = fmt.Sprintf(want, name)
		}
		h.calls(name, want)
		renamed := "renamed-" + file
		h.ok(os.Rename(h.path(file), h.path(renamed)))
		file = renamed
		h.sees(file, "ready")
	}}
}

// misbehaviour is a tool that is refused, or misbehaves when it is called.
type misbehaviour struct {
	name    string
	module  dialecttest.Module
	verdict string // default: ready
	call    string // after `tool "NAME": `, if it is ready
}

func misbehaving() []misbehaviour {
	const wall = "the call took longer than 5s, its limit (limits.timeout): "
	one := func(s ...dialecttest.Step) dialecttest.Module { return dialecttest.Module{Do: s} }
	loop := []dialecttest.Step{dialecttest.Loop()}
	return []misbehaviour{
		{name: "output_flood", module: one(dialecttest.Output(100 << 20)), call: "result: more than 1048576 bytes (limits.output): ask for less"},
		{name: "log_flood", module: one(dialecttest.Log(abi.Info, 1_000_000, strings.Repeat("l", 100)), dialecttest.Text("logged")), call: "logged"},
		{name: "long_lines", module: one(dialecttest.Log(abi.Warn, 1_000, strings.Repeat("l", 100_000)), dialecttest.Text("logged")), call: "logged"},
		{name: "progress_flood", module: one(dialecttest.Progress(1_000_000, `{"progress":1}`), dialecttest.Text("told")), call: "told"},
		{name: "host_call_flood", module: one(dialecttest.Op(abi.OpKVGet, 1_000_000, `{"key":"a"}`)), verdict: "held: asks for kv: not decided: …"},
		{name: "sleeps", module: one(dialecttest.Sleep(time.Minute)), call: wall},
		{name: "trap", module: one(dialecttest.Trap()), call: "trapped: unreachable: "},
		{name: "exits", module: one(dialecttest.Exit(3)), call: "left with exit code 3"},
		{name: "exponential", module: one(dialecttest.Exponential()), call: wall},
		{name: "grows", module: one(dialecttest.Grow(60_000)), call: "no memory"},
		{name: "lies", module: one(dialecttest.Import("hutch:host", "output_write", "ii", "i", -256, -1)), call: "answered what it may not: "},
		{name: "describes", module: dialecttest.Module{Describe: loop}, verdict: "rejected: describe: timeout: " + wall[:len(wall)-2]},
		{name: "initializes", module: dialecttest.Module{Initialize: loop}, verdict: "rejected: describe: timeout: " + wall[:len(wall)-2]},
		{name: "starts", module: dialecttest.Module{Start: loop}, verdict: "rejected: describe: timeout: " + wall[:len(wall)-2]},
		{name: "start_traps", module: dialecttest.Module{Start: []dialecttest.Step{dialecttest.Trap()}}, verdict: "rejected: describe: trap: does not start: trapped: unreachable"},
		{name: "wordy", module: dialecttest.Module{Describe: []dialecttest.Step{dialecttest.Output(5 << 20)}}, verdict: "rejected: describe: limit: description: …"},
	}
}

func callAct(m misbehaviour) act {
	return act{m.name, func(h hand, round int) {
		name := fmt.Sprintf("%s_%d", m.name, round)
		m.module.Tools = []tool.Spec{dialecttest.Spec(name)}
		m.module.Version = fmt.Sprint(round) // of those that describe themselves
		put(h.T, h.s, name+".wasm", wasmAppendRound(m.module.Bytes(), round))
		defer func() { h.ok(os.Remove(h.path(name + ".wasm"))) }()
		if m.verdict != "" {
			h.sees(name+".wasm", m.verdict)
			return
		}
		h.sees(name+".wasm", "ready")
		h.calls(name, fmt.Sprintf("tool %q: %s", name, m.call), fmt.Sprintf("tool %q %s", name, m.call), m.call)
	}}
}

// wasmAppendRound makes a module another file, and the same code.
func wasmAppendRound(module []byte, round int) []byte {
	return append(module, wasmbintest.Custom("round", fmt.Append(nil, round))...)
}

// playFrozen stops the worker of a call, as one that waits in the kernel for ever
// would be. It is alone, so that it knows which worker that is.
func playFrozen(h hand, round int) {
	name := fmt.Sprintf("frozen_%d", round)
	h.s.alone.Lock()
	defer h.s.alone.Unlock()
	before := map[int]bool{}
	for _, w := range h.s.workers(h.T) {
		before[w.pid] = true
	}
	put(h.T, h.s, name+".wasm", dialecttest.Module{
		Tools: []tool.Spec{dialecttest.Spec(name)}, Do: []dialecttest.Step{dialecttest.Loop()},
	}.Bytes())
	h.sees(name+".wasm", "ready")
	called := make(chan struct{})
	go func() {
		defer close(called)
		// The call is run again on the next worker, which is not stopped.
		h.calls(name, fmt.Sprintf(endings[wasmbintest.OutOfTime], name))
	}()
	for tick, stopped := time.Tick(20*time.Millisecond), false; !stopped && !h.Failed(); <-tick {
		for _, w := range h.s.workers(h.T) {
			// A good worker that comes back meanwhile computes for a moment only.
			if !before[w.pid] && w.ticks > 20 {
				h.ok(syscall.Kill(w.pid, syscall.SIGSTOP))
				stopped = true
			}
		}
	}
	<-called
	if how := h.s.log.ends(name+".wasm", "frozen"); !slices.Contains(how, "frozen") {
		h.Errorf("%s: its workers ended by %q", name, how)
	}
	h.ok(os.Remove(h.path(name + ".wasm")))
}

// playFolder puts what is no file of ours where files are.
func playFolder(h hand, round int) {
	outside := filepath.Join(h.TempDir(), "outside.wasm")
	h.ok(os.WriteFile(outside, steady("outside"), 0o600))
	for _, o := range []struct {
		name, want string
		make       func(path string) error
	}{
		{"pipe", "is a named pipe, not a regular file", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"folder", "is a directory, not a regular file", func(path string) error { return os.Mkdir(path, 0o700) }},
		{"leaves", "symlink leaves the folder", func(path string) error { return os.Symlink(outside, path) }},
		{"dangling", "symlink points nowhere", func(path string) error { return os.Symlink("nowhere", path) }},
		{"sparse", "bytes, at most 16777216", func(path string) error { return sparseFile(path, 1<<40) }},
	} {
		name := fmt.Sprintf("%s-%d.wasm", o.name, round)
		h.ok(o.make(h.path(name)))
		h.sees(name, "rejected: …"+o.want+"…")
		h.ok(os.Rename(h.path(name), h.path("renamed-"+name)))
		h.sees("renamed-"+name, "rejected: …"+o.want+"…")
		h.ok(os.Remove(h.path("renamed-" + name)))
	}
}

func sparseFile(path string, size int64) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// playLarge drops files as large as they may be, with nothing behind the header.
func playLarge(h hand, round int) {
	for i := range 4 {
		name := fmt.Sprintf("large-%d-%d.wasm", i, round)
		put(h.T, h.s, name, append(wasmbintest.Module(), bytes.Repeat([]byte{byte(round), 0xff, byte(i)}, 5<<20)...))
		h.sees(name, "rejected: pre-check: …")
		h.ok(os.Remove(h.path(name)))
	}
}

// playMass makes, renames and removes two hundred files as fast as it can.
func playMass(h hand, round int) {
	const n = 200
	name := func(i int, what string) string { return fmt.Sprintf("mass-%d-%d-%s.wasm", round, i, what) }
	want := func(i int) string { return []string{"ready", "rejected: pre-check: header: …"}[i%2] }
	for i := range n {
		body := []byte(fmt.Sprintf("no module: %d in %d", i, round))
		if i%2 == 0 {
			body = greeter(fmt.Sprintf("mass_%d_%d", round, i), "here")
		}
		put(h.T, h.s, name(i, "first"), body)
	}
	for i := range n {
		h.sees(name(i, "first"), want(i))
	}
	for i := range n {
		h.ok(os.Rename(h.path(name(i, "first")), h.path(name(i, "second"))))
	}
	for i := range n {
		h.sees(name(i, "second"), want(i))
	}
	for i := range n {
		h.ok(os.Remove(h.path(name(i, "second"))))
	}
}

// playSteady replaces a good tool that is being called.
func playSteady(h hand, round int) {
	for i := range 5 {
		put(h.T, h.s, "good-steady.wasm", steady(fmt.Sprintf("%d.%d", round, i)))
		h.calls("good_steady", "")
	}
}

// damaged drops cuts of a module, and copies with a bit turned over. Whatever
// becomes of each is said, and what can be called, ends.
func damaged(of string, n int, seed uint64, whole []byte) act {
	return act{"damaged " + of, func(h hand, round int) {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		var names []string
		for i := range n {
			body := bytes.Clone(whole[:r.IntN(len(whole))])
			if i%2 == 0 {
				body = bytes.Clone(whole)
				body[r.IntN(len(body))] ^= 1 << r.IntN(8)
			}
			names = append(names, fmt.Sprintf("damaged-%s-%d-%d.wasm", of, round, i))
			put(h.T, h.s, names[i], body)
		}
		for _, name := range names {
			h.sees(name, "…")
			h.ok(os.Remove(h.path(name)))
		}
	}}
}
