package sdktest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk"
)

// A Desk is where one agent works on a board with a module whose texts say with ✅ and ❌
// what became of a call, as those of the shipped modules do.
type Desk struct {
	*testing.T
	Module *sdk.Module
	// Tracker is [Host]'s, with what the agent may ask.
	Tracker http.Handler
	// Lang is the language that is configured; empty is English.
	Lang string
}

// Call calls a tool.
func (d Desk) Call(name, args string) Result {
	d.Helper()
	return Host{Tracker: d.Tracker, Config: map[string]string{"lang": d.Lang}}.Call(d.T, d.Module, name, args)
}

// Wants calls a tool and wants its text to have a part, beginning with ❌ if and only if it
// is an error.
func (d Desk) Wants(name, args, part string) Result {
	d.Helper()
	got := d.Call(name, args)
	if !strings.Contains(got.Text, part) || got.IsError != strings.HasPrefix(got.Text, "❌ ") {
		d.Errorf("%s %s: got %q (error %t), want %q", name, args, got.Text, got.IsError, part)
	}
	return got
}

// Get is [Desk.Wants], and returns what the tool answers besides its text.
func Get[T any](d Desk, name, args, part string) (out T) {
	d.Helper()
	d.Wants(name, args, part).Into(d.T, &out)
	return out
}
