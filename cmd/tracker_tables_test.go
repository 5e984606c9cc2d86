package cmd_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerrest"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

// tableOf returns the rows of the table of a page that has that head, without their marks.
func tableOf(t *testing.T, document, head string) (rows [][]string) {
	t.Helper()
	body, err := os.ReadFile("../" + document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(body), "\n"+head+"\n|---")
	if !ok {
		t.Fatalf("%s has no table %s", document, head)
	}
	_, rest, _ = strings.Cut(rest, "\n")
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// code is a text as pages show it.
func code(text string) string { return "`" + text + "`" }

// The table of routes is that of the server, with the scope and the tools of each.
func TestTrackerDocumentHasEveryRoute(t *testing.T) {
	var want [][]string
	for _, r := range trackerrest.Routes() {
		tools := make([]string, len(r.Tools))
		for i, tool := range r.Tools {
			tools[i] = code(tool)
		}
		if len(tools) == 0 {
			tools = []string{"–"}
		}
		want = append(want, []string{code(r.Method + " " + r.Path), code(r.Scope), strings.Join(tools, ", ")})
	}
	sameRows(t, tableOf(t, trackerPage, "| route | scope | tools |"), want)
}

func sameRows(t *testing.T, got, want [][]string) {
	t.Helper()
	if !slices.EqualFunc(got, want, slices.Equal) {
		var lines []string
		for _, row := range want {
			lines = append(lines, "| "+strings.Join(row, " | ")+" |")
		}
		t.Errorf("%s lacks rows or has too many; they are\n%s", trackerPage, strings.Join(lines, "\n"))
	}
}

// The tables of scopes and of errors have each one that there is, once.
func TestTrackerDocumentHasEveryScopeAndError(t *testing.T) {
	scopes := slices.DeleteFunc(access.Scopes(), func(s string) bool { return s == access.ThreadsRead })
	var shown []string
	for _, row := range tableOf(t, trackerPage, "| scope | lets |") {
		shown = append(shown, strings.Trim(row[0], "`"))
	}
	slices.Sort(shown)
	slices.Sort(scopes)
	if !slices.Equal(shown, scopes) {
		t.Errorf("the scopes are %q, the page has %q", scopes, shown)
	}
	want := map[string]string{}
	for _, name := range codes(t) {
		want[code(name)] = strconv.Itoa(tracker.Errorf(name, "x").Status())
	}
	got := map[string]string{}
	for _, row := range tableOf(t, trackerPage, "| code | status | |") {
		got[row[0]] = row[1]
	}
	if !maps.Equal(got, want) {
		t.Errorf("the codes are %v, the page has %v", want, got)
	}
}

// codes reads the constants of protocol/tracker that are codes of errors.
func codes(t *testing.T) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "../protocol/tracker/error.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 && strings.HasPrefix(v.Names[0].Name, "Code") {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		}
		return true
	})
	if len(all) == 0 {
		t.Fatal("no code was found")
	}
	return all
}

// The table of states is what a board allows.
func TestTrackerDocumentHasEveryMove(t *testing.T) {
	b := board.New(&boardtest.Memory{}, board.Options{})
	if _, err := b.Ensure(t.Context(), tracker.CreateMember{Slug: "ann", Kind: tracker.Human}); err != nil {
		t.Fatal(err)
	}
	seat := b.For(tracker.Caller{Slug: "ann", Scopes: access.Scopes()})
	if _, err := seat.CreateProject(t.Context(), tracker.CreateProject{Slug: "test"}); err != nil {
		t.Fatal(err)
	}
	var want [][]string
	for _, from := range tracker.Statuses() {
		var to []string
		for _, status := range []tracker.Status{tracker.Backlog, tracker.Todo, tracker.Done, tracker.InProgress, tracker.InReview, tracker.Cancelled} {
			if from != status && moves(t, seat, from, status) {
				to = append(to, code(string(status)))
			}
		}
		if len(to) == 0 {
			to = []string{"nothing"}
		}
		want = append(want, []string{code(string(from)), strings.Join(to, ", ")})
	}
	sameRows(t, tableOf(t, trackerPage, "| from | to |"), want)
}

// moves reports whether a task can go from one status to another.
func moves(t *testing.T, seat tracker.Service, from, to tracker.Status) bool {
	t.Helper()
	task, err := seat.CreateTask(t.Context(), tracker.CreateTask{Project: "test", Title: "x"})
	if err == nil {
		_, err = seat.UpdateTask(t.Context(), task.ID, tracker.UpdateTask{Status: tracker.Some(string(from)), Force: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = seat.UpdateTask(t.Context(), task.ID, tracker.UpdateTask{Status: tracker.Some(string(to))})
	return err == nil
}

// The table of limits has the numbers of the code.
func TestTrackerDocumentHasTheLimits(t *testing.T) {
	const kib = 1 << 10
	rows := map[string]string{}
	for _, row := range tableOf(t, trackerPage, "## Limits\n\n| | |") {
		rows[row[0]] = row[1]
	}
	for name, want := range map[string]string{
		"title of a task or step":              fmt.Sprintf("%d bytes", tracker.MaxTitle),
		"description":                          fmt.Sprintf("%d KiB", tracker.MaxDescription/kib),
		"message":                              fmt.Sprintf("%d KiB", tracker.MaxMessage/kib),
		"reason of a reject or release":        fmt.Sprintf("%d KiB", tracker.MaxReason/kib),
		"name":                                 fmt.Sprintf("%d bytes", tracker.MaxName),
		"slug":                                 fmt.Sprintf("%d of small letters, digits, `-` and `_`", tracker.MaxSlug),
		"status of a member":                   fmt.Sprintf("%d characters", tracker.MaxStatusText),
		"label or capability":                  fmt.Sprintf("%d bytes, without a comma; %d of them", tracker.MaxLabel, tracker.MaxLabels),
		"mentions of a message":                strconv.Itoa(tracker.MaxMentions),
		"tasks that one waits for":             strconv.Itoa(tracker.MaxBlockers),
		"steps of a task":                      strconv.Itoa(tracker.MaxSteps),
		"file":                                 fmt.Sprintf("%d MiB over REST; 1 MiB into a tool, 750,000 bytes out of one", tracker.MaxFile/kib/kib),
		"name of a file":                       fmt.Sprintf("%d bytes", tracker.MaxFilename),
		"idempotency key, `client_msg_id`":     fmt.Sprintf("%d bytes", tracker.MaxKey),
		"page":                                 fmt.Sprintf("%d items, %d by itself", tracker.MaxPage, tracker.DefaultPage),
		"tasks of a heartbeat":                 strconv.Itoa(tracker.MaxCurrent),
		"frames after that":                    fmt.Sprintf("%d KiB", (6*tracker.MaxMessage+64*kib)/kib),
		"queue of an agent":                    fmt.Sprintf("%s events, %d days", thousands(tracker.QueueMost), int(tracker.QueueAge.Hours())/24),
		"deliveries before an event is parked": strconv.Itoa(tracker.MaxTries),
	} {
		if rows[name] != want {
			t.Errorf("the limit of %s is %q, the page has %q", name, want, rows[name])
		}
	}
	page := regexp.MustCompile(`\s+`).ReplaceAllString(pageText(t), " ")
	for _, want := range []string{
		fmt.Sprintf("no `auth` within %.0f seconds", tracker.AuthWithin.Seconds()), fmt.Sprintf("come every %.0f seconds", tracker.HeartbeatEvery.Seconds()),
		fmt.Sprintf("after %.0f without a frame", tracker.OfflineAfter.Seconds()), fmt.Sprintf("again after %.0f seconds", tracker.AckWithin.Seconds()),
		fmt.Sprintf("| %d | the same agent", tracker.CloseSuperseded), fmt.Sprintf("| %d | not let in", tracker.CloseAuth),
		fmt.Sprintf("| %d | no `auth`", tracker.CloseAuthTimeout), fmt.Sprintf("| %d | frames were not read", tracker.CloseSlow),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s does not say %q", trackerPage, want)
		}
	}
}

func thousands(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }

func pageText(t *testing.T) string {
	t.Helper()
	body, err := os.ReadFile("../" + trackerPage)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// What the page says of tools is what the policy that comes with them grants.
func TestTrackerDocumentHasWhatToolsAreGranted(t *testing.T) {
	body, err := os.ReadFile("../tools-wasm/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"assign_task": {tracker.TasksAssign}}
	for _, r := range trackerrest.Routes() {
		for _, tool := range r.Tools {
			if !slices.Contains(want[tool], r.Scope) {
				want[tool] = append(want[tool], r.Scope)
			}
		}
	}
	granted := regexp.MustCompile(`(?m)^      (\w+): \{grant: \{tracker: \[(.*)\]\}\}$`)
	found := 0
	for _, m := range granted.FindAllStringSubmatch(string(body), -1) {
		found++
		got := strings.Split(strings.ReplaceAll(m[2], `"`, ""), ", ")
		slices.Sort(got)
		slices.Sort(want[m[1]])
		if !slices.Equal(got, want[m[1]]) {
			t.Errorf("%s is granted %q, and the page says %q", m[1], got, want[m[1]])
		}
	}
	if found < 20 {
		t.Errorf("%d tools with a grant were found", found)
	}
}
