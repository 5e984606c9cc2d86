package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// Recognise says which dialect m speaks, or what it lacks: the error names the
// export or import and says what it should be. A module must export describe
// and call, and may import only what its dialect has. One with a script must be an
// engine instead.
func Recognise(m *wasmbin.Module) (Kind, error) {
	if payload, ok := m.Custom[ScriptSection]; ok {
		return JS, recogniseScript(m, payload)
	}
	for _, name := range []string{exportDescribe, exportCall} {
		if err := checkExport(m, name, funcType{Results: types(wasmbin.I32)}); err != nil {
			return "", err
		}
	}
	if err := m.Reserved(); err != nil {
		return "", err
	}
	if err := checkImports(m, nativeHost(), extismEnv(), extismUser()); err != nil {
		return "", err
	}
	kind, err := kindOf(m)
	if err != nil {
		return "", err
	}
	if kind == Hutch && !exportsMemory(m) {
		return "", errNoMemory
	}
	return kind, nil
}

func recogniseScript(m *wasmbin.Module, payload []byte) error {
	if _, err := parseScript(payload); err != nil {
		return err
	}
	if err := checkEngine(m); err != nil {
		return err
	}
	if err := m.Reserved(); err != nil {
		return err
	}
	if err := checkImports(m, jsHost()); err != nil {
		return err
	}
	if !exportsMemory(m) {
		return errNoMemory
	}
	return nil
}

// errNoMemory is about a module whose bytes nobody could read.
var errNoMemory = fmt.Errorf("memory is not exported as %q", "memory")

// checkExport returns an error unless m exports exactly one function of that
// name and type.
func checkExport(m *wasmbin.Module, name string, t funcType) error {
	var found []wasmbin.Export
	for _, e := range m.Exports {
		if e.Name == name {
			found = append(found, e)
		}
	}
	want := t.String()
	switch {
	case len(found) == 0:
		return fmt.Errorf("export %q is missing", name)
	case len(found) > 1:
		return fmt.Errorf("export %q is there %d times", name, len(found))
	case found[0].Func == nil:
		return fmt.Errorf("export %q is a %s, want a function %s", name, found[0].Kind, want)
	case found[0].Func.String() != want:
		return fmt.Errorf("export %q has type %s, want %s", name, found[0].Func, want)
	}
	return nil
}

func exportsMemory(m *wasmbin.Module) bool {
	return slices.ContainsFunc(m.Exports, func(e wasmbin.Export) bool {
		return e.Name == "memory" && e.Kind == wasmbin.Memory
	})
}

// checkImports names the first import that is none of these and not of the system.
func checkImports(m *wasmbin.Module, hosts ...sandbox.HostModule) error {
	known := knownImports(hosts)
	names := make([]string, 0, len(hosts)+1)
	for _, h := range hosts {
		if h.Name != extismUserModule {
			names = append(names, h.Name)
		}
	}
	names = append(names, sandbox.SystemModule)
	for _, i := range m.Imports {
		want, ok := known[i.Module][i.Name]
		switch {
		case i.Func == nil:
			return fmt.Errorf("import %s is a %s; a module may import functions only", quoted(i), i.Kind)
		case !ok:
			return fmt.Errorf("import %s: unknown; a module may import %s", quoted(i), strings.Join(names, ", "))
		case i.Func.String() != want:
			return fmt.Errorf("import %s has type %s, want %s", quoted(i), i.Func, want)
		}
	}
	return nil
}

// quoted returns the import's name, cut, in the form "module"."name".
func quoted(i wasmbin.Import) string {
	return strconv.Quote(shown(i.Module)) + "." + strconv.Quote(shown(i.Name))
}

// knownImports maps module and function to the function's type.
func knownImports(hosts []sandbox.HostModule) map[string]map[string]string {
	known := map[string]map[string]string{sandbox.SystemModule: {}}
	for name, t := range sandbox.SystemFunctions() {
		known[sandbox.SystemModule][name] = t.String()
	}
	for _, h := range hosts {
		known[h.Name] = map[string]string{}
		for _, f := range h.Funcs {
			known[h.Name][f.Name] = f.Type.String()
		}
	}
	return known
}

// kindOf tells the dialects apart by what a module imports: without one of
// these it could not answer.
func kindOf(m *wasmbin.Module) (Kind, error) {
	imports := func(prefix string) bool {
		return slices.ContainsFunc(m.Imports, func(i wasmbin.Import) bool { return strings.HasPrefix(i.Module, prefix) })
	}
	native, extism := imports(nativeModule), imports("extism:host/")
	switch {
	case native && extism:
		return "", fmt.Errorf("imports both %s and %s; a module speaks one of them", nativeModule, extismModule)
	case native:
		return Hutch, nil
	case extism:
		return V1, nil
	}
	return "", fmt.Errorf("imports neither %s nor %s, so it cannot answer", nativeModule, extismModule)
}

// Requested returns the capabilities that the functions m imports would need,
// each with the reason; nil if it imports none that is gated. Asking gives
// nothing.
func Requested(m *wasmbin.Module) tool.Requests {
	functions := map[string][]string{}
	for _, i := range m.Imports {
		if i.Module != nativeModule && i.Module != extismModule {
			continue
		}
		if capability := abi.Op(i.Name).Capability(); capability != "" && !slices.Contains(functions[capability], i.Name) {
			functions[capability] = append(functions[capability], i.Name)
		}
	}
	var requests tool.Requests
	for capability, names := range functions {
		if requests == nil {
			requests = tool.Requests{}
		}
		slices.Sort(names)
		requests[capability] = importReason(names)
	}
	return requests
}

func importReason(names []string) json.RawMessage {
	return json.RawMessage(`[{"reason":` + strconv.Quote("imports "+strings.Join(names, ", ")) + `}]`)
}
