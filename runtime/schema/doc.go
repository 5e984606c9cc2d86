// Package schema holds values against JSON Schemas that strangers wrote, within
// bounds, and says what to change in words that a model can act on.
//
// A schema is hostile until shown otherwise. Compiling one is bounded by its size;
// validating with one is bounded in steps and in time, one validation at a time for
// each schema. Everything may be used from any goroutine; there are none of the
// package's own.
package schema
