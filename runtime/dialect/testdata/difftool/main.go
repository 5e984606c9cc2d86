// Command difftool runs one plugin in the v1 dialect and under extism/go-sdk,
// which is the reference, and prints both answers to each call. It is built
// without the race detector, under which compiling a Go guest takes ten times
// as long.
//
//	difftool plugin.wasm < calls.json > answers.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect"
)

// Call is one element of the input, Answer one of the output.
type Call struct {
	Tool      string            `json:"tool"`
	Arguments json.RawMessage   `json:"arguments"`
	Config    map[string]string `json:"config"`
}

type Answer struct {
	Ours, Reference Side
}

// Side is what one of the two made of a call.
type Side struct {
	Output []byte   `json:"output"`
	Err    string   `json:"err"`
	Class  string   `json:"class"` // ours only
	Logs   []string `json:"logs"`
}

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal("difftool: ", err)
	}
}

func run(ctx context.Context, path string) error {
	wasm, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var calls []Call
	if err := json.NewDecoder(os.Stdin).Decode(&calls); err != nil {
		return err
	}
	guest, err := dialect.Load(ctx, wasm, dialect.Options{})
	if err != nil {
		return err
	}
	extism.SetLogLevel(extism.LogLevelTrace)
	plugin, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}},
		extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		return err
	}
	answers := make([]Answer, len(calls))
	for i, c := range calls {
		answers[i].Ours = ours(ctx, guest, c)
		if answers[i].Reference, err = reference(ctx, plugin, c); err != nil {
			return fmt.Errorf("reference: %w", err)
		}
	}
	if err := errors.Join(guest.Close(ctx), plugin.Close(ctx)); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

func ours(ctx context.Context, g *dialect.Guest, c Call) Side {
	var s Side
	var err error
	s.Output, _, err = g.Call(ctx, 1, abi.Invocation{
		Tool: c.Tool, Arguments: c.Arguments, Config: c.Config, Limits: abi.Limits{OutputBytes: 2 << 20},
		Log: func(level abi.LogLevel, line string) { s.logged(int(level), line) },
	})
	var f *abi.Failure
	if errors.As(err, &f) {
		s.Err, s.Class = f.Text, string(f.Class)
	}
	return s
}

// reference calls the plugin with the input that the dialect builds.
func reference(ctx context.Context, plugin *extism.CompiledPlugin, c Call) (Side, error) {
	p, err := plugin.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: wazero.NewModuleConfig()})
	if err != nil {
		return Side{}, err
	}
	p.Config = c.Config
	var s Side
	p.SetLogger(func(level extism.LogLevel, line string) { s.logged(int(level.ExtismCompat()), line) })
	input := fmt.Appendf(nil, `{"method":"tools/call","params":{"name":%q,"arguments":%s}}`, c.Tool, c.Arguments)
	status, out, err := p.CallWithContext(ctx, "call", input)
	s.Output = out
	if err != nil {
		s.Err = err.Error()
	} else if status != 0 {
		s.Err = fmt.Sprintf("status %d", int32(status))
	}
	return s, p.Close(ctx)
}

// logged keeps the plugin's own lines; the SDK logs into the same place.
func (s *Side) logged(level int, line string) {
	if strings.HasPrefix(line, "log: ") {
		s.Logs = append(s.Logs, fmt.Sprint(level, " ", line))
	}
}
