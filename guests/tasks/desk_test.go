package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

// A desk is where one agent works on a real board.
type desk struct {
	*testing.T
	tracker http.Handler
	lang    string
}

func (d desk) call(name, args string) sdktest.Result {
	d.Helper()
	return sdktest.Host{Tracker: d.tracker, Config: map[string]string{"lang": d.lang}}.Call(d.T, module, name, args)
}

// wants calls a tool and wants its text to have a part, beginning with ❌ if and only if it
// is an error.
func (d desk) wants(name, args, part string) sdktest.Result {
	d.Helper()
	got := d.call(name, args)
	if !strings.Contains(got.Text, part) || got.IsError != strings.HasPrefix(got.Text, "❌ ") {
		d.Errorf("%s %s: got %q (error %t), want %q", name, args, got.Text, got.IsError, part)
	}
	return got
}

func (d desk) task(name, args, part string) (t tracker.Task) {
	d.Helper()
	d.wants(name, args, part).Into(d.T, &t)
	return t
}
