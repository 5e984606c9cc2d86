package sandbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// SystemModule is the name of the module that every guest may import, WASI
// preview 1.
const SystemModule = "wasi_snapshot_preview1"

// SystemFunctions maps the functions of [SystemModule] to their types. It
// starts no engine, so it may be called where none shall run.
func SystemFunctions() map[string]wasmbin.FuncType {
	functions := make(map[string]wasmbin.FuncType, len(systemParams))
	for name, params := range systemParams {
		var t wasmbin.FuncType
		for _, p := range params {
			if p == 'l' {
				t.Params = append(t.Params, wasmbin.I64)
			} else {
				t.Params = append(t.Params, wasmbin.I32)
			}
		}
		if name != "proc_exit" { // all others return an errno
			t.Results = []wasmbin.ValueType{wasmbin.I32}
		}
		functions[name] = t
	}
	return functions
}

// systemParams has an i for each i32 and an l for each i64
// (WebAssembly/WASI, legacy/preview1/docs.md).
var systemParams = map[string]string{
	"args_get":                "ii",
	"args_sizes_get":          "ii",
	"clock_res_get":           "ii",
	"clock_time_get":          "ili",
	"environ_get":             "ii",
	"environ_sizes_get":       "ii",
	"fd_advise":               "illi",
	"fd_allocate":             "ill",
	"fd_close":                "i",
	"fd_datasync":             "i",
	"fd_fdstat_get":           "ii",
	"fd_fdstat_set_flags":     "ii",
	"fd_fdstat_set_rights":    "ill",
	"fd_filestat_get":         "ii",
	"fd_filestat_set_size":    "il",
	"fd_filestat_set_times":   "illi",
	"fd_pread":                "iiili",
	"fd_prestat_dir_name":     "iii",
	"fd_prestat_get":          "ii",
	"fd_pwrite":               "iiili",
	"fd_read":                 "iiii",
	"fd_readdir":              "iiili",
	"fd_renumber":             "ii",
	"fd_seek":                 "ilii",
	"fd_sync":                 "i",
	"fd_tell":                 "ii",
	"fd_write":                "iiii",
	"path_create_directory":   "iii",
	"path_filestat_get":       "iiiii",
	"path_filestat_set_times": "iiiilli",
	"path_link":               "iiiiiii",
	"path_open":               "iiiiillii",
	"path_readlink":           "iiiiii",
	"path_remove_directory":   "iii",
	"path_rename":             "iiiiii",
	"path_symlink":            "iiiii",
	"path_unlink_file":        "iii",
	"poll_oneoff":             "iiii",
	"proc_exit":               "i",
	"proc_raise":              "i",
	"random_get":              "ii",
	"sched_yield":             "",
	"sock_accept":             "iii",
	"sock_recv":               "iiiiii",
	"sock_send":               "iiiii",
	"sock_shutdown":           "ii",
}

// stateless are the functions of [SystemModule] after which it is as it was before:
// there are no files, and input is always empty.
var stateless = [...]string{
	"args_get", "args_sizes_get", "clock_res_get", "clock_time_get", "environ_get", "environ_sizes_get",
	"fd_fdstat_get", "fd_filestat_get", "fd_prestat_dir_name", "fd_prestat_get", "fd_read", "fd_write",
	"poll_oneoff", "proc_exit", "random_get", "sched_yield",
}

// listing are the functions of [SystemModule] that go through a list in memory, and
// have its length as their third parameter.
var listing = [...]string{"fd_pread", "fd_pwrite", "fd_read", "fd_write", "poll_oneoff", "sock_recv", "sock_send"}

// mostListed is how long such a list may be, as on other systems, and listedUnits what
// each entry costs: what a call does.
const (
	mostListed  = 1 << 10
	listedUnits = 50
)

// paths are the functions of [SystemModule] that take paths, with which of their
// parameters say how long these are. The engine copies a path and goes through it
// before it finds that there is no folder for it.
var paths = map[string][]int{
	"path_create_directory":   {2},
	"path_filestat_get":       {3},
	"path_filestat_set_times": {3},
	"path_link":               {3, 6},
	"path_open":               {3},
	"path_readlink":           {2},
	"path_remove_directory":   {2},
	"path_rename":             {2, 5},
	"path_symlink":            {1, 4},
	"path_unlink_file":        {2},
}

// mostPath is how many bytes a path may have, as on other systems.
const mostPath = 4 << 10

// WASI's EINVAL and ENAMETOOLONG.
const (
	errnoInvalid     = 28
	errnoNameTooLong = 37
)

// registerSystem makes WASI importable. What may change what it keeps for a guest,
// its descriptors, is noted in the instance if it succeeds.
func (m *Module) registerSystem(ctx context.Context) error {
	functions, err := systemImplementation(ctx)
	if err != nil {
		return err
	}
	builder := m.runtime.NewHostModuleBuilder(SystemModule)
	for name, f := range functions {
		if slices.Contains(listing[:], name) {
			f = listed(f)
		}
		if lengths := paths[name]; lengths != nil {
			f = named(f, lengths)
		}
		if !slices.Contains(stateless[:], name) {
			f = noted(f)
		}
		t := SystemFunctions()[name]
		builder.NewFunctionBuilder().
			WithGoModuleFunction(asking(f), valueTypes(t.Params), valueTypes(t.Results)).
			WithName(name).Export(name)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		return fmt.Errorf("host module %q: %w", SystemModule, err)
	}
	return nil
}

// systemImplementation returns the functions of WASI, which another runtime has to be
// asked for.
func systemImplementation(ctx context.Context) (functions map[string]api.GoModuleFunction, err error) {
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	compiled, err := wasi_snapshot_preview1.NewBuilder(r).Compile(ctx)
	if err != nil {
		return nil, err
	}
	functions = map[string]api.GoModuleFunction{}
	for name, f := range compiled.ExportedFunctions() {
		original, ok := f.GoFunction().(api.GoModuleFunction)
		if !ok {
			return nil, fmt.Errorf("%s.%s is no function of the engine's", SystemModule, name)
		}
		functions[name] = original
	}
	return functions, r.Close(ctx)
}

// noted returns f, which says in the instance that it changed something.
func noted(f api.GoModuleFunction) api.GoModuleFunc {
	return func(ctx context.Context, caller api.Module, stack []uint64) {
		in := calling(ctx)
		f.Call(ctx, caller, stack)
		in.altered = in.altered || uint32(stack[0]) == 0
	}
}

// listed returns f with its list charged for, and refused if it is too long: what goes
// through it asks nobody meanwhile.
func listed(f api.GoModuleFunction) api.GoModuleFunc {
	return func(ctx context.Context, caller api.Module, stack []uint64) {
		n := uint32(stack[2])
		if n > mostListed {
			stack[0] = errnoInvalid
			return
		}
		calling(ctx).burn(ctx, uint64(n)*listedUnits)
		f.Call(ctx, caller, stack)
	}
}

// named returns f with the paths that it takes charged for, and refused if one is too
// long; lengths are the parameters that say how long they are.
func named(f api.GoModuleFunction, lengths []int) api.GoModuleFunc {
	return func(ctx context.Context, caller api.Module, stack []uint64) {
		in := calling(ctx)
		for _, i := range lengths {
			n := uint32(stack[i])
			if n > mostPath {
				stack[0] = errnoNameTooLong
				return
			}
			in.Moved(int(n))
		}
		f.Call(ctx, caller, stack)
	}
}

// asking returns f, after which somebody asks now and then whether the guest may go on:
// one that calls by way of a table pays for no more than its own instructions.
func asking(f api.GoModuleFunction) api.GoModuleFunc {
	return func(ctx context.Context, caller api.Module, stack []uint64) {
		f.Call(ctx, caller, stack)
		calling(ctx).returned(ctx)
	}
}

// calling returns the instance that calls.
func calling(ctx context.Context) *Instance {
	in, ok := ctx.Value(instanceKey{}).(*Instance)
	if !ok { // every call of a guest goes through an instance
		panic(errHostPanic)
	}
	return in
}
