package dialect

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// The JavaScript dialect. A module of it is an engine, QuickJS compiled to
// WebAssembly, with the script in the custom section hutch.js:
//
//	name "\n" script
//
// name is the bare name of the file, for errors; the script is UTF-8, not empty and
// without NUL. The engine exports functions that work on values of JavaScript, which
// are i64 (js_engine.go), and imports one: env.jsFunctionProxy(context i32, this i64,
// count i32, values i32) -> i64, which a script's calls of the host come to.
//
// The prelude runs before the script. It defines the globals that a script finds and
// calls the import with four values, (op, text, number, 0):
//
//	0 input      the call's input, as a string
//	1 output     text becomes the output; number is what it is (see jsDone). 0, or -3
//	             over the limit
//	2 log        text is a line, number its level
//	3 progress   text is {"progress":n,"total"?:n,"message"?:s}
//	4 config     text is a key as JSON; a JSON string or null
//	5 ask        text is the body of the gated operation with that number in
//	             nativeOps; its answer, with its code as a digit before it
//	6 random     32 random bits, as an int
//
// It is no boundary: a script that gets behind it can call the import as it likes,
// and a module may have an engine of its own. What protects is here and in sandbox.

// ScriptSection is the name of the custom section in which a module carries a script.
const ScriptSection = "hutch.js"

// engineDigest is the SHA-256 of the engine that goes into new modules: qjs.wasm of
// github.com/fastschema/qjs v0.0.6, which is QuickJS-ng.
const engineDigest = "88fcbeead33cca3ec8394feb0fb3eec8047ec9ac5062aba7a63799cee11989b7"

// CheckEngine returns an error unless wasm is the engine that goes into modules of
// this version.
func CheckEngine(wasm []byte) error {
	sum := sha256.Sum256(wasm)
	if got := hex.EncodeToString(sum[:]); got != engineDigest {
		return fmt.Errorf("JavaScript engine has SHA-256 %s, want %s", got, engineDigest)
	}
	return nil
}

// WithScript returns engine with a script in it. The error is one line about the
// script.
func WithScript(engine []byte, name, text string) ([]byte, error) {
	payload := []byte(name + "\n" + text)
	if _, err := parseScript(payload); err != nil {
		return nil, err
	}
	return wasmbin.AppendCustom(engine, ScriptSection, payload)
}

// script is what a custom section holds.
type script struct{ name, text string }

// maxScriptName bounds the name of a script.
const maxScriptName = 255

func parseScript(payload []byte) (*script, error) {
	if len(payload) > wasmbin.MaxCustomBytes {
		return nil, fmt.Errorf("script of %d bytes, at most %d with its name", len(payload), wasmbin.MaxCustomBytes)
	}
	name, text, found := bytes.Cut(payload, []byte("\n"))
	switch {
	case !found || len(name) == 0 || len(name) > maxScriptName:
		return nil, fmt.Errorf("script: its name has %d bytes, must have 1 to %d and a line of its own", len(name), maxScriptName)
	case abi.OneLine(string(name), maxScriptName) != string(name):
		return nil, errors.New("script: its name has characters that cannot be shown")
	case len(bytes.TrimSpace(text)) == 0:
		return nil, fmt.Errorf("%s is empty", name)
	case !utf8.Valid(text):
		return nil, fmt.Errorf("%s is not UTF-8", name)
	case bytes.IndexByte(text, 0) >= 0:
		return nil, fmt.Errorf("%s:%d: a NUL byte", name, 1+bytes.Count(text[:bytes.IndexByte(text, 0)], []byte("\n")))
	}
	return &script{string(name), string(text)}, nil
}

// Code returns what a worker needs of a module: it without custom sections, but for
// the script.
func Code(m *wasmbin.Module) ([]byte, error) {
	payload, ok := m.Custom[ScriptSection]
	if !ok {
		return m.Stripped(), nil
	}
	return wasmbin.AppendCustom(m.Stripped(), ScriptSection, payload)
}

// Compiled returns what of [Code] is compiled: all but a script.
func Compiled(code []byte) []byte {
	without, err := wasmbin.WithoutCustom(code, ScriptSection)
	if err != nil { // it is no module, and nothing of it is compiled
		return code
	}
	return without
}

// stackUnits is how deeply guests of a dialect may nest calls; 0 is the default.
func stackUnits(k Kind) int64 {
	if k == JS {
		return jsStackUnits
	}
	return 0
}

// jsDoor is the function that an engine imports.
const (
	jsModule   = "env"
	jsFunction = "jsFunctionProxy"
)

func jsHost() sandbox.HostModule {
	const i32, i64 = wasmbin.I32, wasmbin.I64
	return sandbox.HostModule{Name: jsModule, Funcs: []sandbox.HostFunc{
		hostFunc(jsFunction, types(i32, i64, i32, i32), types(i64), jsAsked),
	}}
}

// What a script asks for.
const (
	jsInput = iota
	jsOutput
	jsLog
	jsProgress
	jsConfig
	jsAsk
	jsRandom
)

// What an output is.
const (
	jsDone     = iota
	jsFailed   // the text of an error
	jsNoMemory // a result that memory is to blame for if it was refused any
)

// jsState is what a script has answered with.
type jsState struct {
	failed bool         // with an error's text
	over   *abi.Failure // it ran out of memory
}

// jsAsked answers one call of the host. What cannot be read comes to undefined.
func jsAsked(ctx context.Context, c *call, in *sandbox.Instance, stack []uint64) {
	e := &engine{in: in, interpreter: interpreter{handle: uint64(uint32(stack[0]))}, call: func(export string, args ...uint64) (uint64, error) {
		return first(in.Reenter(ctx, export, args...)), nil
	}}
	count, values := uint32(stack[2]), uint32(stack[3])
	stack[0] = jsUndefined
	const wanted = 4
	raw, ok := in.Read(values, wanted*8)
	if count < wanted || !ok {
		return
	}
	op, ok := jsInt(binary.LittleEndian.Uint64(raw))
	number, known := jsInt(binary.LittleEndian.Uint64(raw[16:]))
	if !ok || !known {
		return
	}
	c.personal = c.personal || op != jsOutput
	switch op {
	case jsInput:
		stack[0] = e.newString(c.input)
		return
	case jsRandom:
		var drawn [4]byte
		in.Random(drawn[:])
		stack[0] = uint64(binary.LittleEndian.Uint32(drawn[:]))
		return
	}
	text, free, ok := e.string(binary.LittleEndian.Uint64(raw[8:]))
	if !ok {
		return
	}
	stack[0] = c.jsAnswer(ctx, e, op, number, text)
	free()
}

// jsAnswer does what a script asks for with a text, and returns its answer.
func (c *call) jsAnswer(ctx context.Context, e *engine, op, number int32, text span32) uint64 {
	switch op {
	case jsOutput:
		return jsNumber(c.jsOutput(e.in, number, text))
	case jsLog:
		nativeLog(ctx, c, e.in, []uint64{uint64(uint32(number)), uint64(text.ptr), uint64(text.len)})
	case jsProgress:
		nativeProgress(ctx, c, e.in, []uint64{uint64(text.ptr), uint64(text.len)})
	case jsConfig:
		nativeConfigGet(ctx, c, e.in, []uint64{uint64(text.ptr), uint64(text.len)})
		return e.newString(c.native.result)
	case jsAsk:
		ops := nativeOps()
		if number < 0 || int(number) >= len(ops) {
			return jsUndefined
		}
		r := c.ask(ctx, ops[number], int(text.len), func() ([]byte, bool) { return e.in.Read(text.ptr, text.len) })
		return e.newString(append(strconv.AppendInt(nil, int64(r.Code), 10), r.Body...))
	}
	return jsUndefined
}

// jsOutput takes the answer of a script, which replaces what it wrote before.
func (c *call) jsOutput(in *sandbox.Instance, what int32, text span32) int {
	c.native = nativeState{refused: c.native.refused}
	c.js.failed, c.js.over = what == jsFailed, nil
	if what == jsNoMemory {
		c.js.over = in.OverMemory("ran out of it")
	}
	return c.native.write(in, text.ptr, text.len, c.limits.OutputBytes)
}

//go:embed prelude.js
var prelude []byte

// preludeName is what the prelude's functions are called in stack traces.
const preludeName = "<hutch>"

// The ways into the prelude, which it returns one function for.
const (
	jsName = iota
	jsDescribe
	jsStart
	jsUnsettled
	jsThrown
)

// run has the interpreter take a way into the prelude, after what it has not done
// before. It returns a status like that of an export.
func (s *script) run(e *engine, c *call, way uint64) (int32, error) {
	if err := e.boot(s.name); err != nil {
		return 0, err
	}
	err := s.follow(e, way)
	trap := &abi.Failure{Class: abi.ClassTrap}
	switch {
	case (err == nil || errors.Is(err, trap)) && e.exceeded():
		return 0, abi.Exceeded(abi.ClassLimit, abi.LimitStack, "stack overflow: calls are nested too deeply")
	case err != nil:
		return 0, err
	}
	switch {
	case e.over != nil:
		return 0, e.over
	case c.js.over != nil:
		return 0, c.js.over
	case c.js.failed:
		c.native.output = append(c.native.output, s.hint(c.native.output)...)
		return 1, nil
	}
	return 0, nil
}

// follow runs the script, unless it has run, and if it does not throw one way into the
// prelude, until nothing is left to run.
func (s *script) follow(e *engine, way uint64) error {
	if !e.loaded {
		if _, thrown, err := e.eval(s.name, []byte(s.text)); err != nil || thrown {
			return either(err, s.report(e, thrown))
		}
		e.loaded = true
	}
	if _, thrown, err := e.apply(e.enter, way, jsUndefined); err != nil || thrown {
		return either(err, s.report(e, thrown))
	}
	if _, thrown, err := e.eval(preludeName, []byte("0")); err != nil || thrown { // what promises wait for
		return either(err, s.report(e, thrown))
	}
	refused := e.in.OverMemory("ran out of it")
	left, thrown, err := e.apply(e.enter, jsUnsettled, jsUndefined)
	if left == jsNumber(1) { // what it waits for may have ended so
		e.over = refused
	}
	return either(err, s.report(e, thrown))
}

// report has the prelude say what was thrown.
func (s *script) report(e *engine, thrown bool) error {
	if !thrown {
		return nil
	}
	value, err := e.call("JS_GetException", e.handle)
	if err != nil {
		return err
	}
	if _, again, err := e.apply(e.enter, jsThrown, value); err != nil || !again {
		return err
	}
	return abi.Failf(abi.ClassGuest, "%s: it threw what cannot be shown", s.name)
}

// syntaxError finds the line of a syntax error.
var syntaxError = regexp.MustCompile(`^[^:]+:(\d+):\d+: SyntaxError: `)

// unscripted are what authors write who know JavaScript from elsewhere.
var unscripted = [...]struct {
	in   *regexp.Regexp
	hint string
}{
	{regexp.MustCompile(`\bawait\b`), "; await works in async functions only"},
	{regexp.MustCompile(`\bimport\b`), "; a tool is one file, which imports nothing"},
	{regexp.MustCompile(`\bexport\b`), "; a tool exports nothing: it calls tool({...})"},
}

// hint is the line that a syntax error is about, since columns are of little help
// with one, and what else helps. It is empty for other errors.
func (s *script) hint(why []byte) string {
	found := syntaxError.FindSubmatch(why)
	if found == nil {
		return ""
	}
	lines := strings.Split(s.text, "\n")
	n, err := strconv.Atoi(string(found[1]))
	if err != nil || n < 1 || n > len(lines) {
		return ""
	}
	line := ": " + abi.Cut(strings.TrimSpace(lines[n-1]), 80)
	for _, w := range unscripted {
		if w.in.MatchString(lines[n-1]) {
			return w.hint + line
		}
	}
	return ", in" + line
}
