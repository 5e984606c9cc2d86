package tool_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

// TestWhoCannotAskIsDenied holds that a face which knows nothing of asking refuses.
func TestWhoCannotAskIsDenied(t *testing.T) {
	err := fmt.Errorf("call: %w", &tool.AskError{Tool: "rm"})
	if !errors.Is(err, tool.ErrDenied) {
		t.Errorf("%v is not ErrDenied", err)
	}
	var ask *tool.AskError
	if !errors.As(err, &ask) || ask.Tool != "rm" {
		t.Errorf("%v does not say which tool", err)
	}
}
