package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

func TestReport(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{nil, 0, ""},
		{errors.New("no luck"), 1, "hutch: error: no luck\n"},
		{errors.New("one\ntwo\r\n\x1b[31mred\u202e"), 1, "hutch: error: one; two; \\x1b[31mred\\u202e\n"},
		{errors.New("no\u200bwidth, \x9b no text"), 1, "hutch: error: no\\u200bwidth, \ufffd no text\n"},
		{usagef("port %d", 7).withHint("use %d", 8), 2, "hutch: error: port 7\nhutch: hint: use 8\n"},
		{fmt.Errorf("load: %w", hinted(tool.ErrHeld, "look")), 3, "hutch: error: load: held\nhutch: hint: look\n"},
		{fmt.Errorf("call: %w", tool.ErrDenied), 3, "hutch: error: call: denied\n"},
		{tool.NotFound("x"), 1, "hutch: error: Tool not found: x\n"},
		{fmt.Errorf("scan: %w", context.Canceled), 130, "hutch: error: interrupted\n"},
		{fmt.Errorf("%w: by a signal", tool.ErrCancelled), 130, "hutch: error: cancelled: by a signal\n"},
		{errReported, 1, ""},
	} {
		var out strings.Builder
		if code := report(&out, c.err); code != c.code || out.String() != c.want {
			t.Errorf("%v: %d %q, want %d %q", c.err, code, out.String(), c.code, c.want)
		}
	}
}

// What broke in hutch itself is an error like any other, and not a trace.
func TestCommandThatBreaks(t *testing.T) {
	err := runCommand(context.Background(), []string{"hutch", "version"}, program{stdout: broken{}})
	if err == nil || err.Error() != "hutch broke: no paper" {
		t.Error(err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { panic("no paper") }
func (broken) Close() error              { return nil }
