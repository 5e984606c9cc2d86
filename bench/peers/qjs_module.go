//go:build qjs

package main

// Only the file qjs.wasm of this module is used, and no Go of it: the import is
// here for go.mod and go.sum, which pin the file.
import _ "github.com/fastschema/qjs"
