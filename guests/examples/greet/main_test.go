package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestGreet(t *testing.T) {
	for args, want := range map[string]string{
		`{"name":"Ada"}`:                  "Hello, Ada!",
		`{"name":"Ada","style":"formal"}`: "Good day, Ada.",
		`{"name":"Ada","style":"loud"}`:   "HELLO, ADA!",
	} {
		if got := sdktest.Call(t, module, "greet", args); got.IsError || got.Text != want {
			t.Errorf("%s: got %q, want %q", args, got.Text, want)
		}
	}
}

func TestGreetRefusesNobody(t *testing.T) {
	got := sdktest.Call(t, module, "greet", map[string]any{"name": ""})
	if want := "invalid arguments for greet: name: 0 characters, at least 1"; got.Text != want || !got.IsError {
		t.Errorf("got %q, want the error %q", got.Text, want)
	}
}
