package dialect

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

func TestD21_D22_Recognise(t *testing.T) {
	i32 := types(wasmbin.I32)
	fn := func(name string, params, results []valueType) wasmbin.Export {
		return wasmbin.Export{Name: name, Kind: wasmbin.Function, Func: &funcType{Params: params, Results: results}}
	}
	imp := func(module, name string, params, results []valueType) wasmbin.Import {
		return wasmbin.Import{Module: module, Name: name, Kind: wasmbin.Function, Func: &funcType{Params: params, Results: results}}
	}
	describe, call := fn("describe", nil, i32), fn("call", nil, i32)
	memory := wasmbin.Export{Name: "memory", Kind: wasmbin.Memory}
	native := imp("hutch:host", "input_len", nil, i32)
	v1 := imp("extism:host/env", "alloc", types(wasmbin.I64), types(wasmbin.I64))
	type exports = []wasmbin.Export
	type imports = []wasmbin.Import
	all := exports{describe, call, memory}
	tests := []struct {
		name string
		exports
		imports
		kind Kind
		want string
	}{
		{"native", all, imports{native, imp("wasi_snapshot_preview1", "proc_exit", i32, nil)}, Hutch, ""},
		{"v1", exports{describe, call}, imports{v1}, V1, ""},
		{"v1, old", all, imports{v1, imp("extism:host/user", "config_get", types(wasmbin.I64), types(wasmbin.I64)),
			imp("extism:host/user", "notify_tool_list_changed", nil, nil)}, V1, ""},
		{"no call", exports{describe, memory}, imports{native}, "", `export "call" is missing`},
		{"a reserved export", exports{describe, call, memory, fn("hutch:fuel", nil, nil)}, imports{native}, "",
			`export section: export 3: "hutch:fuel": names that begin with "hutch:" are reserved, choose another one`},
		{"a reserved import", all, imports{native, imp("hutch:meter", "tick", nil, nil)}, "",
			`import section: import 1: "hutch:meter" "tick": the module is reserved, nothing can be imported from it`},
		{"no describe", exports{call, memory}, imports{native}, "", `export "describe" is missing`},
		{"describe takes something", exports{fn("describe", i32, i32), call, memory}, imports{native}, "",
			`export "describe" has type (i32) -> (i32), want () -> (i32)`},
		{"call returns nothing", exports{describe, fn("call", nil, nil), memory}, imports{native}, "",
			`export "call" has type () -> (), want () -> (i32)`},
		{"call is a memory", exports{describe, {Name: "call", Kind: wasmbin.Memory}, memory}, imports{native}, "",
			`export "call" is a memory, want a function () -> (i32)`},
		{"call twice", exports{describe, call, call, memory}, imports{native}, "", `export "call" is there 2 times`},
		{"no memory", exports{describe, call}, imports{native}, "", `memory is not exported as "memory"`},
		{"memory is a function", exports{describe, call, fn("memory", nil, nil)}, imports{native}, "", `memory is not exported as "memory"`},
		{"unknown module", all, imports{native, imp("env", "abort", nil, nil)}, "",
			`import "env"."abort": unknown; a module may import hutch:host, extism:host/env, wasi_snapshot_preview1`},
		{"unknown function", all, imports{native, imp("hutch:host", "shell", nil, nil)}, "",
			`import "hutch:host"."shell": unknown; a module may import hutch:host, extism:host/env, wasi_snapshot_preview1`},
		{"a host's function of Extism", all, imports{v1, imp("extism:host/env", "reset", nil, nil)}, "",
			`import "extism:host/env"."reset": unknown; a module may import hutch:host, extism:host/env, wasi_snapshot_preview1`},
		{"hostile name", all, imports{native, imp("e\x1bnv", "\"\n", nil, nil)}, "",
			`import "e�nv"."\" ": unknown; a module may import hutch:host, extism:host/env, wasi_snapshot_preview1`},
		{"wrong type", all, imports{imp("hutch:host", "log", i32, nil)}, "",
			`import "hutch:host"."log" has type (i32) -> (), want (i32, i32, i32) -> ()`},
		{"memory import", all, imports{{Module: "env", Name: "memory", Kind: wasmbin.Memory}}, "",
			`import "env"."memory" is a memory; a module may import functions only`},
		{"both", all, imports{native, v1}, "", `imports both hutch:host and extism:host/env; a module speaks one of them`},
		{"neither", all, nil, "", `imports neither hutch:host nor extism:host/env, so it cannot answer`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kind, err := Recognise(&wasmbin.Module{Imports: tt.imports, Exports: tt.exports})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if kind != tt.kind || got != tt.want {
				t.Errorf("got  %q %s\nwant %q %s", kind, got, tt.kind, tt.want)
			}
		})
	}
}

func TestLoadSaysWhatRecogniseSays(t *testing.T) {
	tests := map[string]mod{
		`module: export "call" is missing`:           {Omit: []string{"call"}},
		`module: memory is not exported as "memory"`: {Omit: []string{"memory"}},
		`module: import "hutch:host"."shell": unknown; a module may import hutch:host, extism:host/env, wasi_snapshot_preview1`: {Imports: [][2]string{{"hutch:host", "shell"}}},
	}
	for want, m := range tests {
		if _, err := Load(t.Context(), m.Bytes(), Options{}); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if _, err := Load(t.Context(), []byte("\x00asm\x01\x00\x00\x00\x02\x05\xff\xff\xff\xff\x0f"), Options{}); err == nil {
		t.Error("D01: loads")
	}
}

func TestRequested(t *testing.T) {
	module := func(list ...[2]string) *wasmbin.Module {
		m := &wasmbin.Module{}
		for _, i := range list {
			m.Imports = append(m.Imports, wasmbin.Import{Module: i[0], Name: i[1]})
		}
		return m
	}
	h := "hutch:host"
	tests := []struct {
		m    *wasmbin.Module
		want tool.Requests
	}{
		{module([2]string{h, "log"}, [2]string{h, "config_get"}, [2]string{"env", "http_request"}), nil},
		{module([2]string{"extism:host/env", "http_request"}), tool.Requests{"http": json.RawMessage(`[{"reason":"imports http_request"}]`)}},
		{module([2]string{h, "kv_set"}, [2]string{h, "kv_get"}, [2]string{h, "kv_set"}, [2]string{h, "a2a_send"}), tool.Requests{
			"kv": json.RawMessage(`[{"reason":"imports kv_get, kv_set"}]`), "bridge": json.RawMessage(`[{"reason":"imports a2a_send"}]`)}},
	}
	for _, tt := range tests {
		if got := Requested(tt.m); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	for _, op := range nativeOps() {
		if op.Capability() == "" {
			t.Errorf("%s is not gated", op)
		}
	}
}

func TestAllFunctionsOfThePDKAreThere(t *testing.T) {
	if n := len(extismEnv().Funcs); n != 26 {
		t.Errorf("%d functions in %s", n, extismModule)
	}
	if n := len(nativeHost().Funcs); n != 7+len(nativeOps()) {
		t.Errorf("%d functions in %s", n, nativeModule)
	}
	for _, v1 := range []bool{false, true} {
		if _, err := wasmbin.Check(dialecttest.Module{V1: v1}.Bytes(), wasmbin.Budget{}); err != nil {
			t.Error(err)
		}
	}
}
