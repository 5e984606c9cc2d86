package fetch

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// What docs/operators.md says is fixed is what goes here.
func TestOperatorsPageHasWhatIsFixed(t *testing.T) {
	page, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	o := Options{}.withDefaults()
	for what, want := range map[string]string{
		"redirects of one request":                                                         fmt.Sprint(o.MaxRedirects),
		"time of one request, and of connecting":                                           fmt.Sprintf("%v, %v", o.Timeout, o.ConnectTimeout),
		"header lines of a request, and of those of an answer that a tool may see":         fmt.Sprint(o.MaxHeaders),
		"header bytes of a request, and of an answer":                                      fmt.Sprintf("%dKiB", o.MaxHeaderBytes>>10),
		"body of a request without `max_request`, and of an answer without `max_response`": fmt.Sprintf("%dMiB", o.MaxRequest>>20),
		"headers that a tool may set":                                                      quoted(requestHeaders()),
		"headers that a tool may see":                                                      quoted(responseHeaders()),
	} {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(what) + ` \| (.*) \|$`).FindSubmatch(page)
		if row == nil || string(row[1]) != want {
			t.Errorf("docs/operators.md: %s: got %s, want %s", what, row, want)
		}
	}
	if o.MaxRequest != o.MaxResponse {
		t.Errorf("one row has both: %d, %d", o.MaxRequest, o.MaxResponse)
	}
}

// A refusal says what can be done, and a list cannot be added to.
func TestRefusedHeadersSayWhatIsPossible(t *testing.T) {
	_, refusal := New(Options{}).guestHeader(map[string][]string{"X-Unheard-Of": {"1"}})
	if refusal == nil || !strings.HasPrefix(refusal.Text, "header X-Unheard-Of: ") || strings.Contains(refusal.Text, "operator") {
		t.Errorf("got %+v", refusal)
	}
}
