package tracker_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// S0-063: what stands on the socket is spelt here alone. Both ends name every frame by the
// constants of this package, and neither has a type or a text of its own for one.
func TestS0_063_BothEndsUseTheseFrames(t *testing.T) {
	own := parsed(t, "frame.go")
	frames := map[string]string{}
	ast.Inspect(own[0], func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 && strings.HasPrefix(v.Names[0].Name, "Frame") {
			frames[strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)] = v.Names[0].Name
		}
		return true
	})
	if len(frames) < 9 {
		t.Fatalf("found the frames %v", frames)
	}
	for _, end := range []string{"../trackerhub", "../trackerclient"} {
		used := map[string]bool{}
		for _, file := range parsed(t, end+"/*.go") {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					used[n.Sel.Name] = true
				case *ast.BasicLit:
					if name := frames[strings.Trim(n.Value, `"`)]; name != "" && n.Kind == token.STRING && strings.Contains(n.Value, ".") {
						t.Errorf("%s spells %s itself", end, n.Value)
					}
				case *ast.Field:
					if n.Tag != nil && strings.Contains(n.Tag.Value, "json:") {
						t.Errorf("%s has a field of the wire: %s", end, n.Tag.Value)
					}
				}
				return true
			})
		}
		for text, name := range frames {
			made := text == tracker.FrameEvent && used["Frame"] // by the event itself
			if !used[name] && !made {
				t.Errorf("%s does not know the frame %s", end, text)
			}
		}
	}
}

// parsed reads the sources that fit a pattern, without tests.
func parsed(t *testing.T, pattern string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	must(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		must(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		must(t, err)
		files = append(files, file)
	}
	if len(files) == 0 {
		t.Fatalf("%s: no sources", pattern)
	}
	return files
}

// H-24: the objects have these fields, and what is empty comes out all the same.
func TestH_24_FieldsOfObjects(t *testing.T) {
	const person = "slug kind"
	for _, c := range []struct {
		object any
		fields string
	}{
		{tracker.TaskOut{}, "id key number project parent_id title description type priority status labels assignee assignee_slug creator watchers " +
			"blocked_by blocked steps_total steps_done version created_at updated_at"},
		{tracker.ProjectRef{}, "id slug"},
		{tracker.MemberRef{}, person},
		{tracker.StepOut{}, "id index title done done_at done_by"},
		{tracker.MessageOut{ChatID: new(string), TaskID: new(string), ParentID: new(string)}, "id chat_id task_id parent_id author author_slug content mentions attachments created_at"},
		{tracker.ProjectOut{}, "id slug name description archived"},
		{tracker.MemberOut{}, "id slug name kind capabilities status activity presence current_tasks"},
		{tracker.AttachmentOut{TaskID: new(string), MessageID: new(string)}, "id filename mime size sha256 task_id message_id created_at"},
	} {
		got := membersOf(t, c.object)
		for want := range strings.FieldsSeq(c.fields) {
			if !slices.Contains(got, want) {
				t.Errorf("%s lacks %s: it has %q", reflect.TypeOf(c.object).Name(), want, got)
			}
		}
	}
}

// S0-018: what an agent reads of a message in a chat.
func TestS0_018_DataOfAChatMessage(t *testing.T) {
	chat := "c"
	got := membersOf(t, tracker.ChatMessage{MessageOut: tracker.MessageOut{ChatID: &chat}, MessageID: "m"})
	for _, want := range []string{"chat_id", "author_slug", "content", "mentions", "message_id"} {
		if !slices.Contains(got, want) {
			t.Errorf("the data lacks %s: it has %q", want, got)
		}
	}
	raw, err := json.Marshal(tracker.Event{ID: "i", Name: tracker.EventChatMessage, Data: json.RawMessage(`{}`)}.Frame(""))
	must(t, err)
	if !strings.HasPrefix(string(raw), `{"type":"event","id":"i","event":"chat.message","data":{}`) {
		t.Errorf("the frame is %s", raw)
	}
}

// membersOf are the names of an object in JSON, sorted.
func membersOf(t *testing.T, object any) []string {
	t.Helper()
	raw, err := json.Marshal(object)
	must(t, err)
	var members map[string]json.RawMessage
	must(t, json.Unmarshal(raw, &members))
	return slices.Sorted(maps.Keys(members))
}
