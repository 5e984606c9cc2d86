module github.com/hutch-run/hutch/javascript

go 1.26.0

// Only the file qjs.wasm of this module is used, and no Go of it.
require github.com/fastschema/qjs v0.0.6
