package trackerproxy

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tracker"
)

// about says by what a request belongs to a project, for a scope that is limited to one.
type about int

const (
	byQuery      about = iota // the parameter project_id
	byBody                    // the member project_slug
	byTask                    // the task in the path
	byMessage                 // the message in the path
	byChat                    // the chat in the path
	byProject                 // the project in the path
	byMember                  // the member in the path
	byAttachment              // the attachment in the answer
	byList                    // the projects in the answer
	byNobody                  // none: it needs the scope without a project
)

// A route is what a guest may ask for with a scope.
type route struct {
	method, path, scope string
	about               about
}

// routes are those that tools are made of, and those that read beside them. What belongs to
// people, to the runtime of an agent and to its queue of events is not among them: no scope
// of a guest opens it. Literal segments come before names.
func routes() []route {
	return []route{
		{"GET", "/tasks", tracker.TasksRead, byQuery},
		{"POST", "/tasks", tracker.TasksWrite, byBody},
		{"GET", "/tasks/{id}", tracker.TasksRead, byTask},
		{"PATCH", "/tasks/{id}", tracker.TasksWrite, byTask},
		{"POST", "/tasks/{id}/take", tracker.TasksTake, byTask},
		{"POST", "/tasks/{id}/reject", tracker.TasksTake, byTask},
		{"POST", "/tasks/{id}/watchers", tracker.TasksTake, byTask},
		{"DELETE", "/tasks/{id}/watchers/{slug}", tracker.TasksTake, byTask},
		{"POST", "/tasks/{id}/dependencies", tracker.TasksWrite, byTask},
		{"DELETE", "/tasks/{id}/dependencies/{blocker}", tracker.TasksWrite, byTask},
		{"GET", "/tasks/{id}/steps", tracker.StepsRead, byTask},
		{"POST", "/tasks/{id}/steps", tracker.StepsWrite, byTask},
		{"GET", "/tasks/{id}/steps/{ref}", tracker.StepsRead, byTask},
		{"PATCH", "/tasks/{id}/steps/{ref}", tracker.StepsWrite, byTask},
		{"GET", "/tasks/{id}/comments", tracker.MessagesRead, byTask},
		{"POST", "/tasks/{id}/comments", tracker.MessagesWrite, byTask},
		{"GET", "/chats", tracker.MessagesRead, byQuery},
		{"GET", "/chats/{id}", tracker.MessagesRead, byChat},
		{"GET", "/chats/{id}/messages", tracker.MessagesRead, byChat},
		{"POST", "/chats/{id}/messages", tracker.MessagesWrite, byChat},
		{"GET", "/messages/{id}", tracker.MessagesRead, byMessage},
		{"GET", "/messages/{id}/replies", tracker.MessagesRead, byMessage},
		{"POST", "/messages/{id}/replies", tracker.MessagesWrite, byMessage},
		{"GET", "/tasks/{id}/files", tracker.FilesRead, byTask},
		{"POST", "/tasks/{id}/files", tracker.FilesWrite, byTask},
		{"GET", "/messages/{id}/files", tracker.FilesRead, byMessage},
		{"POST", "/messages/{id}/files", tracker.FilesWrite, byMessage},
		{"GET", "/projects/{id}/files", tracker.FilesRead, byProject},
		{"GET", "/attachments/{id}", tracker.FilesRead, byAttachment},
		{"GET", "/projects", tracker.ProjectsRead, byList},
		{"GET", "/projects/{id}", tracker.ProjectsRead, byProject},
		{"GET", "/members", tracker.MembersRead, byQuery},
		{"PATCH", "/members/me", tracker.MembersSelf, byNobody},
		{"GET", "/members/{slug}", tracker.MembersRead, byMember},
	}
}

// match returns the route of a request; false if no tool has it.
func match(method string, segments []string) (route, bool) {
	for _, r := range routes() {
		if r.method == method && r.fits(segments) {
			return r, true
		}
	}
	return route{}, false
}

func (r route) fits(segments []string) bool {
	own := strings.Split(r.path[1:], "/")
	if len(own) != len(segments) {
		return false
	}
	for i, s := range own {
		if s[0] != '{' && s != segments[i] {
			return false
		}
	}
	return true
}

// parsePath takes a path apart. Each segment comes out as what it means, and no spelling of
// one can become another path: it is escaped anew.
func parsePath(path string) ([]string, error) {
	if len(path) > abi.TrackerMaxPath {
		return nil, fmt.Errorf("the path has %d bytes, at most %d", len(path), abi.TrackerMaxPath)
	}
	if !strings.HasPrefix(path, "/") {
		return nil, errors.New("the path must begin with /, such as /tasks/TE-15")
	}
	var segments []string
	for _, raw := range strings.Split(path[1:], "/") {
		s, err := url.PathUnescape(raw)
		if err != nil || strings.ContainsAny(raw, "?#") {
			return nil, errors.New("the path is not escaped as one: write # as %23, and the query beside it")
		}
		if err := checkRef(s); err != nil {
			return nil, fmt.Errorf("the path has a segment that %w", err)
		}
		if s == "." || s == ".." || strings.ContainsAny(s, `/\`) {
			return nil, errors.New("the path has a segment that leads elsewhere: use an id, a key or a slug")
		}
		segments = append(segments, s)
	}
	return segments, nil
}

func checkRef(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > abi.TrackerMaxRef:
		return fmt.Errorf("has %d bytes, at most %d", len(s), abi.TrackerMaxRef)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return errors.New("has characters that are none")
	}
	return nil
}

func joinPath(segments []string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}
