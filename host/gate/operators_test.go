package gate

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

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
