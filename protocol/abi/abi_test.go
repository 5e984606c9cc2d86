package abi_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// The numbers are part of the ABI: modules that strangers compiled know them.
func TestCodesAndLevelsNeverChange(t *testing.T) {
	for code, want := range map[abi.Code]string{
		0: "ok", 1: "denied", 2: "invalid", 3: "limit", 4: "unavailable", 5: "cancelled", 6: "unknown", -1: "unknown",
	} {
		if got := code.String(); got != want {
			t.Errorf("code %d = %q, want %q", code, got, want)
		}
	}
	levels := []abi.LogLevel{abi.Trace, abi.Debug, abi.Info, abi.Warn, abi.Error}
	if want := []abi.LogLevel{0, 1, 2, 3, 4}; !reflect.DeepEqual(levels, want) {
		t.Errorf("levels %v, want %v", levels, want)
	}
}

func TestEveryOperationNeedsACapability(t *testing.T) {
	for op, want := range map[abi.Op]string{
		abi.OpHTTP: "http", abi.OpKVGet: "kv", abi.OpKVSet: "kv", abi.OpKVDelete: "kv", abi.OpTracker: "tracker",
		abi.OpConversation: "conversation", abi.OpMCP: "bridge", abi.OpA2A: "bridge", abi.OpTool: "tool",
		"http_request2": "", "": "",
	} {
		if got := op.Capability(); got != want {
			t.Errorf("%q needs %q, want %q", op, got, want)
		}
	}
}

func TestRefusalIsJSONWhateverTheText(t *testing.T) {
	got := abi.Refuse(abi.Denied, "say \"please\"\n")
	if want := `{"error":{"code":"denied","message":"say \"please\"\n"}}`; got.Code != abi.Denied || string(got.Body) != want {
		t.Errorf("got %d %s, want %s", got.Code, got.Body, want)
	}
}

func TestFailuresAreToldApartByClass(t *testing.T) {
	err := fmt.Errorf("call: %w", abi.Failf(abi.ClassLimit, "output of %d bytes", 7))
	for target, want := range map[*abi.Failure]bool{
		{Class: abi.ClassLimit}:                            true,
		{Class: abi.ClassLimit, Text: "output of 7 bytes"}: true,
		{Class: abi.ClassLimit, Text: "output of 8 bytes"}: false,
		{Class: abi.ClassTimeout}:                          false,
	} {
		if got := errors.Is(err, target); got != want {
			t.Errorf("is %v = %v, want %v", target, got, want)
		}
	}
	if errors.Is(err, context.Canceled) {
		t.Error("a failure is no context's error")
	}
}

func TestLimitsKeepWhatIsSet(t *testing.T) {
	got := abi.Limits{Wall: time.Second, OutputBytes: 5}.WithDefaults()
	if got.Wall != time.Second || got.OutputBytes != 5 {
		t.Errorf("set limits were changed: %+v", got)
	}
	for v, i := reflect.ValueOf(got), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() && v.Field(i).Kind() != reflect.Bool { // a switch is off
			t.Errorf("%s has no default", v.Type().Field(i).Name)
		}
	}
}
