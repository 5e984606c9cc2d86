package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// trackerTools are what the two designs name, in groups: 8, 4, 3, 2 and 3 are twenty, three are
// for files, three are older names, and one is ours.
func trackerTools() map[string][]string {
	return map[string][]string{
		"tasks":    {"list_tasks", "get_task", "create_task", "update_task", "take_task", "reject_task", "assign_task", "watch_task"},
		"steps":    {"list_steps", "add_step", "complete_step", "update_step"},
		"messages": {"send_message", "list_messages", "reply_message"},
		"projects": {"list_projects", "get_project"},
		"members":  {"list_members", "get_member", "update_my_status"},
		"files":    {"upload_file", "list_files", "download_file"},
		"older":    {"add_comment", "list_comments", "read_messages"},
		"ours":     {"unwatch_task"},
	}
}

// C-01, S0-003, S0-041, S0-050, S1-063, S1-080, C-18: each tool is listed by its name, says nothing of how
// events arrive, and does what it is for, with what is granted from the start, in the tracker of
// this program.
func TestS1_080_EveryToolWorks(t *testing.T) {
	cfg, p := shippedConfig(t)
	s := startServer(t, cfg, p, quiet)
	defer s.halt(t)
	s.awaitReadyModule(t, "tasks.wasm", "steps.wasm", "messages.wasm", "projects.wasm", "members.wasm", "files.wasm")
	local := s.person(t, "")
	local.setUp("First", "Second")
	local.does("POST", "/chats", values{"slug": "general"}, nil)
	local.does("POST", "/members", values{"slug": "other"}, nil)
	session := s.clientOf(t, "2025-11-25", "")
	defer session.close(t)
	wire := regexp.MustCompile(`(?i)web.?socket|\bsockets?\b|\bframes?\b|heartbeat|redeliver|\bREST\b|bearer`)
	c := &toolUser{toolsOf{t, session.ClientSession}, map[string]bool{}}
	c.work()

	listed, err := session.ListTools(t.Context(), nil)
	must(t, err)
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
		raw, err := json.Marshal(tool)
		must(t, err)
		if tool.Name == "update_task" && (!bytes.Contains(raw, []byte(`"enum":["backlog","todo","in_progress","in_review","done","cancelled"]`)) || bytes.Contains(raw, []byte("inreview"))) {
			t.Errorf("published as %s", raw) // C-01: it was called with review all the same
		}
		if word := wire.Find(raw); word != nil {
			t.Errorf("the model reads %q of %s", word, tool.Name) // S0-003
		}
	}
	twenty := 0
	for group, tools := range trackerTools() {
		if group != "files" && group != "older" && group != "ours" {
			twenty += len(tools)
		}
		for _, name := range tools {
			if !slices.Contains(names, name) {
				t.Errorf("%s is not listed", name)
			}
			if !c.called[name] {
				t.Errorf("%s was not called", name)
			}
			delete(c.called, name)
		}
	}
	if twenty != 20 {
		t.Errorf("there are %d tools, and should be 20", twenty)
	}
	if len(c.called) > 0 {
		t.Errorf("called besides: %q", slices.Sorted(maps.Keys(c.called)))
	}
}

// A toolUser knows which tools were called.
type toolUser struct {
	toolsOf
	called map[string]bool
}

func (c *toolUser) does(name string, args values, out any) {
	c.Helper()
	c.called[name] = true
	c.toolsOf.does(name, args, out)
}

// work uses every tool.
func (c *toolUser) work() {
	c.Helper()
	c.does("list_projects", nil, nil)
	c.does("get_project", values{"slug": "team-board"}, nil)
	c.does("list_members", nil, nil)
	c.does("get_member", values{"slug": "local"}, nil)
	c.does("update_my_status", values{"status": "busy"}, nil)
	c.does("list_tasks", values{"project_id": "team-board"}, nil)
	var task tracker.TaskOut
	if c.does("create_task", values{"project_slug": "team-board", "title": "Third"}, &task); task.Key != "TB-3" {
		c.Errorf("made %+v", task)
	}
	c.tasks()
	c.talk()
}

func (c *toolUser) tasks() {
	c.Helper()
	const key = "TB-3"
	c.does("get_task", values{"task_id": "#3"}, nil)
	c.does("watch_task", values{"task_id": key}, nil)
	c.does("unwatch_task", values{"task_id": key}, nil)
	c.does("take_task", values{"task_id": key}, nil)
	c.does("reject_task", values{"task_id": key, "reason": "not mine"}, nil)
	var task tracker.TaskOut
	if c.does("assign_task", values{"task_id": key, "assignee_slug": "other"}, &task); task.AssigneeSlug == nil || *task.AssigneeSlug != "other" {
		c.Errorf("assigned %+v", task)
	}
	c.does("take_task", values{"task_id": "TB-1"}, nil)
	c.does("add_step", values{"task_id": "TB-1", "title": "one"}, nil)
	c.does("update_step", values{"task_id": "TB-1", "step_id": "0", "title": "One"}, nil)
	c.does("complete_step", values{"task_id": "TB-1", "step_id": 0}, nil)
	c.does("complete_step", values{"task_id": "TB-1", "index": 0}, nil)
	c.does("list_steps", values{"task_id": "TB-1"}, nil)
	c.does("update_task", values{"task_id": "TB-1", "status": "In Progress"}, nil)
	if c.does("update_task", values{"task_id": "TB-1", "status": "review"}, &task); task.Status != tracker.InReview || task.StepsDone != 1 {
		c.Errorf("updated %+v", task)
	}
}

func (c *toolUser) talk() {
	c.Helper()
	var said tracker.MessageOut
	c.does("send_message", values{"chat_id": "general", "content": "hello"}, &said)
	c.does("reply_message", values{"parent_id": said.ID, "content": "hello to you"}, nil)
	c.does("list_messages", values{"chat_id": "general"}, nil)
	c.does("read_messages", values{"chat_id": "general", "limit": 1}, nil)
	c.does("add_comment", values{"task_id": "TB-1", "text": "done"}, nil)
	c.does("list_comments", values{"task_id": "TB-1"}, nil)
	var file tracker.AttachmentOut
	c.does("upload_file", values{"task_id": "TB-1", "filename": "a.txt", "content": "aGVsbG8="}, &file)
	c.does("list_files", values{"task_id": "TB-1"}, nil)
	var back struct{ Filename, Content string }
	if c.does("download_file", values{"attachment_id": file.ID}, &back); back.Filename != "a.txt" || back.Content != "aGVsbG8=" {
		c.Errorf("downloaded %+v", back)
	}
}
