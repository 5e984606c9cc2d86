package gate

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
)

// What pages and help say that nothing follows yet is answered as not available.
func TestNothingIsBehindSomeOperations(t *testing.T) {
	for _, op := range []abi.Op{abi.OpConversation, abi.OpMCP, abi.OpA2A, abi.OpTool} {
		s := &call{gate: New(Options{})}
		if got := s.served(t.Context(), abi.Request{Op: op}, &Record{}); got.Code != abi.Unavailable {
			t.Errorf("%s: %d: say so in docs/operators.md, docs/tool-authors.md and hutch help policy", op, got.Code)
		}
	}
}

// What docs/operators.md says is fixed is what goes here.
func TestOperatorsPageHasWhatIsFixed(t *testing.T) {
	page, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		fmt.Sprintf("| requests of one call | %d |", New(Options{}).o.MaxHTTP),
		fmt.Sprintf("| body of an answer, whatever `max_response` says | %dMiB |", mostBody>>20),
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/operators.md lacks %s", row)
		}
	}
}
