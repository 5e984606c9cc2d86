package trackerproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tracker"
)

// grants are the projects for which one scope is granted.
type grants struct {
	all      bool
	projects []string // slugs
}

func (g grants) none() bool { return !g.all && len(g.projects) == 0 }

func grantedBy(scopes []string, scope string) (g grants) {
	for _, s := range scopes {
		name, project, limited := strings.Cut(s, "@")
		switch {
		case name != scope:
		case !limited:
			g.all = true
		default:
			g.projects = append(g.projects, project)
		}
	}
	return g
}

// sending is one request on its way.
type sending struct {
	proxy    *Proxy
	account  Account
	granted  grants
	route    route
	segments []string
	query    map[string]string
	body     []byte
}

// do sends the request once it is known to be about a project that is granted.
func (s *sending) do(ctx context.Context) (abi.TrackerResponse, error) {
	if s.granted.all {
		return s.exchange(ctx, s.route.method, joinPath(s.segments), s.query, s.body)
	}
	if err := s.confine(ctx); err != nil {
		return abi.TrackerResponse{}, err
	}
	out, err := s.exchange(ctx, s.route.method, joinPath(s.segments), s.query, s.body)
	if err != nil || out.Status >= 300 {
		return out, err
	}
	switch s.route.about {
	case byList:
		return s.ofList(out)
	case byAttachment:
		var file struct {
			TaskID    *string `json:"task_id"`
			MessageID *string `json:"message_id"`
		}
		if json.Unmarshal(out.Body, &file) != nil {
			return abi.TrackerResponse{}, s.denied()
		}
		return out, s.ofTaskOrElse(ctx, file.TaskID, file.MessageID, s.message)
	}
	return out, nil
}

// confine sees to it that the request is about a project that is granted, and names things by
// the ids that the tracker has for them.
func (s *sending) confine(ctx context.Context) (err error) {
	switch s.route.about {
	case byQuery:
		return s.confineQuery()
	case byBody:
		if err := s.confineBody(); err != nil {
			return err
		}
	case byTask:
		s.segments[1], err = s.task(ctx, s.segments[1])
	case byMessage:
		err = s.message(ctx, s.segments[1])
	case byChat:
		s.segments[1], err = s.chat(ctx, s.segments[1])
	case byProject:
		s.segments[1], err = s.project(ctx, s.segments[1])
	case byMember:
		err = s.member(ctx, s.segments[1])
	case byNobody:
		return refuse(abi.Denied, "%s %s is about no project: it needs the scope %s, and that is granted for projects only", s.route.method, s.route.path, s.route.scope)
	}
	if err != nil {
		return err
	}
	return s.others(ctx)
}

func (s *sending) denied() error {
	return refuse(abi.Denied, "%s is granted for the project %s only", s.route.scope, strings.Join(s.granted.projects, ", "))
}

func (s *sending) allows(project string) error {
	if slices.Contains(s.granted.projects, project) {
		return nil
	}
	return s.denied()
}

// confineQuery leaves one parameter that names a project, and has one granted there.
func (s *sending) confineQuery() error {
	project, query := "", map[string]string{}
	for name, value := range s.query {
		if !strings.HasPrefix(name, "project") {
			query[name] = value
			continue
		}
		if project != "" && project != value {
			return refuse(abi.Invalid, "query: the project is named twice")
		}
		project = value
	}
	if project == "" && len(s.granted.projects) == 1 {
		project = s.granted.projects[0]
	}
	if project == "" {
		return refuse(abi.Denied, "%s is granted for single projects: name one in project_id: %s", s.route.scope, strings.Join(s.granted.projects, ", "))
	}
	if err := s.allows(project); err != nil {
		return err
	}
	query["project_id"], s.query = project, query
	return nil
}

// members reads the body for what is checked. A name that only looks like another is refused:
// a reader may take it for that.
func (s *sending) members() (map[string]json.RawMessage, error) {
	members, seen := map[string]json.RawMessage{}, map[string]bool{}
	if s.body == nil {
		return members, nil
	}
	d := json.NewDecoder(bytes.NewReader(s.body))
	if _, err := d.Token(); err != nil {
		return nil, refuse(abi.Invalid, "the body cannot be read")
	}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return nil, refuse(abi.Invalid, "the body cannot be read")
		}
		other := strings.ContainsFunc(name, func(c rune) bool { return c >= utf8.RuneSelf }) // ſ is an s to some
		if folded := strings.ToLower(name); seen[folded] || folded != name || other {
			return nil, refuse(abi.Invalid, "body: the name %q stands there twice, or in capitals, or in letters that are not ASCII", abi.Cut(name, 64))
		}
		seen[name], members[name] = true, value
	}
	return members, nil
}

func textOf(raw json.RawMessage) (text string, ok bool) {
	return text, json.Unmarshal(raw, &text) == nil
}

// confineBody wants the project of a new task to be one that is granted.
func (s *sending) confineBody() error {
	members, err := s.members()
	if err != nil {
		return err
	}
	project := ""
	for _, name := range []string{"project_slug", "project_id", "project"} {
		raw, ok := members[name]
		if !ok {
			continue
		}
		text, ok := textOf(raw)
		if !ok || project != "" && project != text {
			return refuse(abi.Invalid, "body: the project is named twice, or is no text")
		}
		project = text
	}
	return s.allows(project)
}

// others checks the tasks that a body names besides, and a blocker in the path.
func (s *sending) others(ctx context.Context) error {
	if len(s.segments) == 4 && s.segments[2] == "dependencies" {
		if _, err := s.task(ctx, s.segments[3]); err != nil {
			return err
		}
	}
	members, err := s.members()
	if err != nil {
		return err
	}
	var refs []string
	for _, name := range []string{"parent_id", "parent", "blocked_by"} {
		var list []string
		raw := members[name]
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		if text, ok := textOf(raw); ok {
			list = []string{text}
		} else if json.Unmarshal(raw, &list) != nil {
			return refuse(abi.Invalid, "body: %s must be a task, or a list of tasks", name)
		}
		refs = append(refs, list...)
	}
	refs = slices.DeleteFunc(refs, func(r string) bool { return r == "" })
	if len(refs) > tracker.MaxBlockers+1 {
		return refuse(abi.Limit, "body: %d tasks are named, at most %d", len(refs), tracker.MaxBlockers+1)
	}
	for _, ref := range refs {
		if _, err := s.task(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

// look reads one thing in the caller's name. What is not there is refused as what is not
// granted, so that a guest learns nothing of other projects.
func (s *sending) look(ctx context.Context, out any, segments ...string) error {
	if checkRef(segments[1]) != nil || segments[1] == "." || segments[1] == ".." || strings.ContainsAny(segments[1], `/\`) {
		return s.denied()
	}
	answer, err := s.exchange(ctx, http.MethodGet, joinPath(segments), nil, nil)
	if err != nil {
		return err
	}
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, out) != nil {
		return s.denied()
	}
	return nil
}

// task returns the id of a task in a project that is granted.
func (s *sending) task(ctx context.Context, ref string) (string, error) {
	var task tracker.TaskOut
	if err := s.look(ctx, &task, "tasks", ref); err != nil {
		return "", err
	}
	return task.ID, s.allows(task.Project.Slug)
}

func (s *sending) chat(ctx context.Context, ref string) (string, error) {
	var chat tracker.ChatOut
	if err := s.look(ctx, &chat, "chats", ref); err != nil {
		return "", err
	}
	if chat.Project == nil {
		return "", s.denied()
	}
	return chat.ID, s.allows(chat.Project.Slug)
}

func (s *sending) message(ctx context.Context, ref string) error {
	var message tracker.MessageOut
	if err := s.look(ctx, &message, "messages", ref); err != nil {
		return err
	}
	return s.ofTaskOrElse(ctx, message.TaskID, message.ChatID, func(ctx context.Context, ref string) error {
		_, err := s.chat(ctx, ref)
		return err
	})
}

// ofTaskOrElse checks the task if there is one, else what other is about, else nothing is
// granted.
func (s *sending) ofTaskOrElse(ctx context.Context, task, other *string, check func(context.Context, string) error) error {
	switch {
	case task != nil && *task != "":
		_, err := s.task(ctx, *task)
		return err
	case other != nil && *other != "":
		return check(ctx, *other)
	}
	return s.denied()
}

func (s *sending) project(ctx context.Context, ref string) (string, error) {
	var project tracker.ProjectOut
	if err := s.look(ctx, &project, "projects", ref); err != nil {
		return "", err
	}
	return project.Slug, s.allows(project.Slug)
}

// member lets members through who belong to a project that is granted; who belongs to none
// belongs to all.
func (s *sending) member(ctx context.Context, ref string) error {
	var member tracker.MemberOut
	if err := s.look(ctx, &member, "members", ref); err != nil {
		return err
	}
	if len(member.Projects) == 0 || slices.ContainsFunc(member.Projects, func(p string) bool { return s.allows(p) == nil }) {
		return nil
	}
	return s.denied()
}

// ofList leaves the projects that are granted.
func (s *sending) ofList(out abi.TrackerResponse) (abi.TrackerResponse, error) {
	var page tracker.Page[tracker.ProjectOut]
	if json.Unmarshal(out.Body, &page) != nil {
		return abi.TrackerResponse{}, s.denied()
	}
	page.Items = slices.DeleteFunc(page.Items, func(p tracker.ProjectOut) bool { return s.allows(p.Slug) != nil })
	body, err := json.Marshal(page)
	out.Body = body
	return out, err
}
