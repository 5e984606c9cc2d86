package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const (
	// randomModules is how many a soak has, each as it is and as a tool.
	randomModules = 300
	// randomBatch is how many are in the folder at a time.
	randomBatch = 25
	// randomBytes is what one is grown from, at most.
	randomBytes = 4000
)

// randomModule is a valid module that binaryen made of random bytes.
type randomModule struct {
	raw, tool []byte // as it is, and as a tool
	name      string // of the tool
}

// randomActs are modules that binaryen makes of random bytes, a few at a time.
func randomActs(t *testing.T, seed uint64) (all []act) {
	t.Helper()
	for _, program := range []string{"wasm-opt", "wasm-as"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not there: apt-get install binaryen", program)
		}
	}
	modules := make([]randomModule, randomModules)
	dir := t.TempDir()
	next := make(chan int)
	var makers sync.WaitGroup
	for range runtime.NumCPU() {
		makers.Go(func() {
			for i := range next {
				var err error
				if modules[i], err = grown(t.Context(), dir, seed, i); err != nil {
					t.Errorf("random module %d: %v", i, err)
				}
			}
		})
	}
	for i := range modules {
		next <- i
	}
	close(next)
	makers.Wait()
	for i := 0; i < len(modules); i += randomBatch {
		name := fmt.Sprintf("random%d", i)
		all = append(all, act{name, func(h hand, round int) { playRandom(h, name, round, modules[i:i+randomBatch]) }})
	}
	return all
}

// grown makes module i of the seed.
func grown(ctx context.Context, dir string, seed uint64, i int) (m randomModule, err error) {
	m.name = fmt.Sprintf("random_%d", i)
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	bytes := make([]byte, 200+r.IntN(randomBytes-200))
	for j := range bytes {
		bytes[j] = byte(r.Uint32())
	}
	file := func(kind string) string { return filepath.Join(dir, fmt.Sprintf("%d.%s", i, kind)) }
	if err := os.WriteFile(file("random"), bytes, 0o600); err != nil {
		return m, err
	}
	features := []string{"--mvp-features", "--enable-bulk-memory", "--enable-reference-types", "--enable-multivalue",
		"--enable-sign-ext", "--enable-nontrapping-float-to-int", "--enable-mutable-globals"}
	binaryen := func(program string, args ...string) error {
		text, err := exec.CommandContext(ctx, program, append(args, features...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %.300s", program, err, text)
		}
		return nil
	}
	if err := errors.Join(
		binaryen("wasm-opt", "-ttf", file("random"), "-o", file("wasm")),
		binaryen("wasm-opt", "-ttf", file("random"), "-S", "-o", file("wat")),
	); err != nil {
		return m, err
	}
	text, err := os.ReadFile(file("wat"))
	if err != nil {
		return m, err
	}
	err = errors.Join(os.WriteFile(file("wat"), []byte(asTool(string(text), m.name)), 0o600),
		binaryen("wasm-as", file("wat"), "-o", file("tool")))
	if err != nil {
		return m, err
	}
	if m.raw, err = os.ReadFile(file("wasm")); err != nil {
		return m, err
	}
	m.tool, err = os.ReadFile(file("tool"))
	return m, err
}

var (
	logImport = regexp.MustCompile(`(?m)^ \(import "fuzzing-support" "[^"]*" (\(func \$[^\s()]+(?: \([^()]*\))*\))\)\n`)
	invoker   = regexp.MustCompile(`(?m)^ \(func (\$\S+_invoker)$`)
)

// asTool makes a tool of a module's text: what it imports is there, and a call
// calls all it has.
func asTool(text, name string) string {
	const at = 1_000_000 // within the first memory that binaryen gives each
	said := `{"tools":[{"name":"` + name + `","description":"Is random.","inputSchema":{"type":"object"}}]}`
	const answer = `{"content":[{"type":"text","text":"done"}]}`
	write := func(at, n int) string {
		return fmt.Sprintf(`(drop (call $hutch_write (i32.const %d) (i32.const %d))) (i32.const 0)`, at, n)
	}
	var calls strings.Builder
	for _, m := range invoker.FindAllStringSubmatch(text, -1) {
		fmt.Fprintf(&calls, "(call $hangLimitInitializer) (call %s) ", m[1])
	}
	var own strings.Builder
	for _, m := range logImport.FindAllStringSubmatch(text, -1) {
		fmt.Fprintf(&own, " %s\n", m[1])
	}
	place := logImport.FindStringIndex(text)
	text = text[:place[0]] + ` (import "hutch:host" "output_write" (func $hutch_write (param i32 i32) (result i32)))` + "\n" +
		logImport.ReplaceAllString(text[place[0]:], "")
	return strings.TrimSuffix(strings.TrimSpace(text), ")") + own.String() +
		fmt.Sprintf(" (data (i32.const %d) %q)\n", at, said+answer) +
		` (func (export "describe") (result i32) ` + write(at, len(said)) + ")\n" +
		` (func (export "call") (result i32) ` + calls.String() + write(at+len(said), len(answer)) + "))\n"
}

// playRandom drops a few random modules, puts the tools in their place, calls
// those that are ready, and renames and removes all.
func playRandom(h hand, name string, round int, modules []randomModule) {
	file := func(i int) string { return fmt.Sprintf("%s-%d-%d.wasm", name, i, round) }
	for i, m := range modules {
		put(h.T, h.s, file(i), m.raw)
	}
	for i := range modules {
		h.sees(file(i), "rejected: …")
	}
	for i, m := range modules {
		put(h.T, h.s, "tool-"+file(i), wasmAppendRound(m.tool, round))
		h.ok(os.Remove(h.path(file(i))))
	}
	ready := 0
	for i, m := range modules {
		if h.sees("tool-"+file(i), "ready", "rejected: …") == "ready" {
			ready++
			h.calls(m.name, "done", `tool "`+m.name+`": `, `tool "`+m.name+`" answered what it may not: `)
		}
		h.ok(os.Rename(h.path("tool-"+file(i)), h.path("renamed-"+file(i))))
	}
	h.s.randomReady.Add(int64(ready))
	for i := range modules {
		h.ok(os.Remove(h.path("renamed-" + file(i))))
	}
}
