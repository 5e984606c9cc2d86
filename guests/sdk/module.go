package sdk

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"github.com/hutch-run/hutch/protocol/tool"
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

// Describe returns the module's description as JSON (a [tool.Description]): what
// the export describe writes. It fails if a definition is faulty.
func (m *Module) Describe() ([]byte, error) {
	if len(m.Tools) == 0 {
		return nil, errors.New("the module has no tools")
	}
	requests, err := m.Requests.encoded()
	if err != nil {
		return nil, err
	}
	d := tool.Description{Version: m.Version, Requests: requests}
	seen := map[string]bool{}
	for _, t := range m.Tools {
		s, err := t.describe(m.Requests.none())
		if err != nil {
			return nil, err
		}
		if seen[s.Name] {
			return nil, fmt.Errorf("tool %s: defined twice", s.Name)
		}
		seen[s.Name] = true
		d.Tools = append(d.Tools, s)
	}
	return encode(d)
}

// Call runs one tool: input is what a host hands to the export call, and the
// answer is what that writes, a [Result] as JSON. It fails only if input is
// no call of a tool of this module; what goes wrong inside a tool is a result.
func (m *Module) Call(h Host, input []byte) ([]byte, error) {
	var in invocation
	if err := decode(input, &in); err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	for _, t := range m.Tools {
		if t.spec.Name == in.Params.Name {
			return encode(t.call(&Call{tool: t.spec.Name, host: h}, in.Params.Arguments))
		}
	}
	return nil, fmt.Errorf("no tool %s in this module", quote(in.Params.Name))
}

// call never fails and never panics: the model reads what went wrong.
func (t Tool) call(c *Call, args any) (result Result) {
	defer func() {
		if p := recover(); p != nil {
			c.Error(stack())
			result = tool.Failed("internal error in tool " + t.spec.Name + ": " + panicText(p))
		}
	}()
	if t.err != nil {
		return tool.Failed(t.err.Error())
	}
	in := reflect.New(t.in.typ)
	if err := t.in.arguments(args, in.Interface()); err != nil {
		return tool.Failed("invalid arguments for " + t.spec.Name + ": " + err.Error())
	}
	out, err := t.run(c, in.Interface())
	if err != nil {
		return tool.Failed(err.Error())
	}
	return t.result(out)
}

func panicText(p any) string {
	switch p := p.(type) {
	case error:
		return p.Error()
	case string:
		return p
	}
	return fmt.Sprintf("panic with a %T", p)
}

// stack returns the panicking goroutine's trace, within one log line's limit.
func stack() string {
	b := make([]byte, 8<<10)
	return string(b[:runtime.Stack(b, false)])
}
