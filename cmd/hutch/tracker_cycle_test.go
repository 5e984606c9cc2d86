package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tracker"
)

// eachEngine runs a test with everything that lasts in SQLite, and in PostgreSQL.
func eachEngine(t *testing.T, test func(*testing.T, func(*Config))) {
	t.Run("sqlite", func(t *testing.T) { test(t, func(*Config) {}) })
	t.Run("postgres", func(t *testing.T) {
		url := server.Database(t)
		test(t, func(cfg *Config) { cfg.Store.URL = url })
	})
}

// toolsOf is a client whose calls have to come out well, but for those that fails says.
type toolsOf struct {
	*testing.T
	session *sdk.ClientSession
}

func (c toolsOf) call(name string, args values) *sdk.CallToolResult {
	c.Helper()
	r, err := c.session.CallTool(c.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		c.Fatalf("%s: %v", name, err)
	}
	return r
}

// does calls a tool, reads its structured answer, and returns its text.
func (c toolsOf) does(name string, args values, out any) string {
	c.Helper()
	r := c.call(name, args)
	text := saidBy(r)
	if r.IsError {
		c.Fatalf("%s %v: %s", name, args, text)
	}
	if out != nil {
		raw, err := json.Marshal(r.StructuredContent)
		must(c, err)
		if err := json.Unmarshal(raw, out); err != nil {
			c.Fatalf("%s: %s: %v", name, raw, err)
		}
	}
	return text
}

// fails calls a tool that says why it does not do it.
func (c toolsOf) fails(name string, args values, says string) {
	c.Helper()
	if r := c.call(name, args); !r.IsError || !strings.Contains(saidBy(r), says) {
		c.Errorf("%s %v: %t %s, want %s", name, args, r.IsError, saidBy(r), says)
	}
}

func saidBy(r *sdk.CallToolResult) string {
	var all []string
	for _, block := range r.Content {
		if text, ok := block.(*sdk.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// S1-081: the whole work on a task with the modules that come with hutch,
// over MCP in both eras, with either engine below.
func TestS1_081_FullCycleOverMCP(t *testing.T) {
	eachEngine(t, func(t *testing.T, change func(*Config)) {
		cfg, p := shippedConfig(t)
		change(&cfg)
		s := startServer(t, cfg, p, quiet)
		defer s.halt(t)
		s.awaitReadyModule(t, "tasks.wasm", "steps.wasm", "messages.wasm", "projects.wasm", "members.wasm", "files.wasm")
		local := s.person(t, "")
		local.setUp("Write the page", "Read the page")
		for i, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(version, func(t *testing.T) {
				who := fmt.Sprintf("coder-%d", i)
				c := s.clientOf(t, version, s.admit(t, who))
				defer c.close(t)
				listed := c.lists(t)
				for _, name := range seedTools {
					if listed[name] == "" {
						t.Errorf("%s is not listed", name)
					}
				}
				cycle(toolsOf{t, c.ClientSession}, who, fmt.Sprintf("TB-%d", i+1))
			})
		}
		reader := s.person(t, s.admit(t, "reader", tracker.TasksRead, tracker.StepsRead))
		for i, key := range []string{"TB-1", "TB-2"} {
			who := fmt.Sprintf("coder-%d", i)
			var log tracker.Page[tracker.Activity]
			reader.does("GET", "/tasks/"+key+"/activity", nil, &log)
			var did []string
			for _, a := range log.Items {
				if a.Actor.Slug == who {
					did = append(did, a.Action)
				}
			}
			slices.Reverse(did)
			if want := []string{"taken", "step_added", "step_updated", "step_added", "step_updated", "commented", "file_added", "status_changed"}; !slices.Equal(did, want) {
				t.Errorf("%s did %q, want %q", who, did, want)
			}
		}
	})
}

// seedTools are those of S0-050.
var seedTools = []string{
	"get_task", "list_tasks", "create_task", "update_task", "take_task", "reject_task", "add_step", "complete_step", "list_steps",
	"add_comment", "list_comments", "send_message", "read_messages", "upload_file", "list_files",
}

// The same through hutch mcp, which owns the state folder, for whoever sits at the machine.
func TestS1_081_FullCycleOverStdio(t *testing.T) {
	cfg, p := shippedConfig(t)
	n, end := overStdio(t, cfg, p)
	defer end()
	atOwner(t, cfg).setUp("Write the page")
	cycle(toolsOf{t, n.session}, access.Local, "TB-1")
}

// cycle takes a task, splits it, works it off, says so, and hands it in.
func cycle(c toolsOf, who, key string) {
	c.Helper()
	var project tracker.ProjectOut
	if c.does("get_project", values{"slug": "team-board"}, &project); project.Key != "TB" {
		c.Errorf("%+v", project)
	}
	var task tracker.TaskOut
	if text := c.does("take_task", values{"task_id": key, "agent_slug": who}, &task); !strings.Contains(text, "✅") || !strings.Contains(text, key) {
		c.Errorf("take_task says %q", text)
	}
	if task.AssigneeSlug == nil || *task.AssigneeSlug != who || task.Status != tracker.InProgress {
		c.Errorf("taken: %+v", task)
	}
	for i, title := range []string{"think", "write"} {
		var step tracker.StepOut
		if c.does("add_step", values{"task_id": key, "title": title}, &step); step.Index != i {
			c.Errorf("%+v", step)
		}
		c.does("complete_step", values{"task_id": key, "step_id": step.ID}, &step)
	}
	c.does("update_my_status", values{"status": "at " + key}, nil)
	var member tracker.MemberOut
	if c.does("get_member", values{"slug": who}, &member); member.Status != "at "+key {
		c.Errorf("%+v", member)
	}
	var said tracker.MessageOut
	if c.does("add_comment", values{"task_id": key, "content": "It is done, @local"}, &said); said.AuthorSlug != who || !slices.Equal(said.Mentions, []string{"local"}) {
		c.Errorf("%+v", said)
	}
	var file tracker.AttachmentOut
	if c.does("upload_file", values{"task_id": key, "filename": "page.md", "content": "IyBQYWdlCg=="}, &file); file.Size != 7 {
		c.Errorf("%+v", file)
	}
	if c.does("update_task", values{"task_id": key, "status": "in_review"}, &task); task.Status != tracker.InReview || task.StepsDone != 2 {
		c.Errorf("%+v", task)
	}
	c.fails("take_task", values{"task_id": "TB-9"}, "❌")
}
