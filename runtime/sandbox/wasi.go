package sandbox

import "github.com/hutch-run/hutch/runtime/wasmbin"

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
