package sdk

import (
	"reflect"
	"runtime"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Serve makes m the module that this program is. Call it once, for a package
// variable, and give that variable's Main to main.
//
// Natively it only returns &m. In a guest it also hands the module to the
// exports describe and call. A faulty definition is reported by Describe.
func Serve(m Module) *Module {
	serve(&m)
	return &m
}

// Main tells someone who ran the program by hand how to make a module of it.
// A host never runs it.
func (m *Module) Main() {
	println(m.usage())
}

func (m *Module) usage() string {
	var names []string
	for _, t := range m.Tools {
		names = append(names, t.spec.Name)
	}
	return "This is a hutch module (" + strings.Join(names, ", ") + "), not a program. Build it for a host:\n" +
		"  hutch build\n" +
		"or, by hand:\n" +
		"  GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w -buildid=' -o tool.wasm ."
}

// Describe returns the module's description as JSON (the shape of
// protocol/tool.Description): what the export describe writes. It fails if a
// definition is faulty.
func (m *Module) Describe() ([]byte, error) {
	if len(m.Tools) == 0 {
		return nil, invalid("the module has no tools")
	}
	d := description{Version: m.Version, Requests: m.Requests}
	seen := map[string]bool{}
	for _, t := range m.Tools {
		s, err := t.describe(len(m.Requests) == 0)
		if err != nil {
			return nil, err
		}
		if seen[s.Name] {
			return nil, invalid("tool " + s.Name + ": defined twice")
		}
		seen[s.Name] = true
		d.Tools = append(d.Tools, s)
	}
	return marshal(d)
}

// Call runs one tool: input is what a host hands to the export call, and the
// answer is what that writes, a [Result] as JSON. It fails only if input is
// no call of a tool of this module; what goes wrong inside a tool is a result.
func (m *Module) Call(h Host, input []byte) ([]byte, error) {
	var in invocation
	if err := unmarshal(input, &in); err != nil {
		return nil, prefixed("call", err)
	}
	for _, t := range m.Tools {
		if t.spec.Name == in.Params.Name {
			return marshal(t.call(&Call{tool: t.spec.Name, host: h}, in.Params.Arguments))
		}
	}
	return nil, invalid("no tool " + quote(in.Params.Name) + " in this module")
}

// call never fails and never panics: the model reads what went wrong.
func (t Tool) call(c *Call, args []byte) (result Result) {
	defer func() {
		if p := recover(); p != nil {
			c.Error(stack())
			result = failed("internal error in tool " + t.spec.Name + ": " + panicText(p))
		}
	}()
	if t.err != nil {
		return failed(t.err.Error())
	}
	in := reflect.New(t.in.typ)
	if err := t.in.decodeArguments(args, in.Elem()); err != nil {
		return failed("invalid arguments for " + t.spec.Name + ": " + err.Error())
	}
	out, err := t.run(c, in.Interface())
	if err != nil {
		return failed(err.Error())
	}
	return t.result(out)
}

// result wraps what the tool's function returned.
func (t Tool) result(out any) Result {
	if r, ok := out.(Result); ok {
		return whole(r)
	}
	if t.out == nil {
		return textResult(reflect.ValueOf(out).String())
	}
	structured, err := t.out.encode(reflect.ValueOf(out))
	if err != nil {
		return failed("internal error in tool " + t.spec.Name + ": result: " + err.Error())
	}
	r := textResult(string(structured))
	if texter, ok := out.(interface{ Text() string }); ok {
		r.Content[0].Text = texter.Text()
	}
	r.Structured = structured
	return r
}

// whole makes a hand-made result fit for the wire: no host takes null content,
// and structured content beside isError breaks some.
func whole(r Result) Result {
	if r.Content == nil {
		r.Content = []Content{}
	}
	if r.IsError {
		r.Structured = nil
	}
	return r
}

func panicText(p any) string {
	switch p := p.(type) {
	case error:
		return p.Error()
	case string:
		return p
	}
	return "panic with a " + reflect.TypeOf(p).String()
}

// stack returns the panicking goroutine's trace, within one log line's limit.
func stack() string {
	b := make([]byte, 8<<10)
	return string(b[:runtime.Stack(b, false)])
}

// Host is what a tool can reach while it runs. In a guest it is the imports
// of hutch:host; in a test, sdktest.Host. Capabilities that a policy grants
// will be methods of it too, so it is not meant to be implemented elsewhere.
type Host interface {
	// Log takes one line.
	Log(level abi.LogLevel, text string)
	// Progress tells how far the call has come.
	Progress(p Progress)
	// Config returns what the operator configured for this module under key.
	Config(key string) (value string, ok bool)
}

// Call is one running call of a tool: what the host offers it. It is valid
// until the tool's function returns.
type Call struct {
	tool string
	host Host
}

// Tool returns the name the tool was called by.
func (c *Call) Tool() string { return c.tool }

// Debug logs text for whoever develops the tool.
func (c *Call) Debug(text string) { c.host.Log(abi.Debug, text) }

// Info logs text. Lines over the host's limits (100 a call, 8 KiB each, unless
// configured otherwise) are dropped or cut.
func (c *Call) Info(text string) { c.host.Log(abi.Info, text) }

// Warn logs text that an operator should see.
func (c *Call) Warn(text string) { c.host.Log(abi.Warn, text) }

// Error logs text that an operator should act on. To tell the model that the
// call failed, return an error.
func (c *Call) Error(text string) { c.host.Log(abi.Error, text) }

// Progress tells whoever waits how far the call has come: done of total, in
// any unit; total is zero if unknown, message may be empty. The host may skip
// reports that come too fast.
func (c *Call) Progress(done, total float64, message string) {
	c.host.Progress(Progress{Progress: done, Total: total, Message: message})
}

// Config returns the value that the operator configured for this module, and
// whether there is one.
func (c *Call) Config(key string) (string, bool) { return c.host.Config(key) }
