package trackerrest

import (
	"reflect"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// A Route is one thing that can be asked of a tracker over REST.
type Route struct {
	Method string
	// Path is below the prefix that the tracker is served at, with names in braces.
	Path string
	// Scope is what the token must have.
	Scope string
	// Tools are the tools that use it. Without any, Reason says why none does.
	Tools  []string
	Reason string
	// Summary is what it does, in one line.
	Summary string

	name     string // of the operation
	status   int    // of success; 200 if it is 0
	query    []param
	body     reflect.Type // nil: there is none
	required []string     // members of the body
	aliases  map[string]string
	answer   reflect.Type // nil: there is none
	many     int64        // bytes of a body; 0 is [maxBody]
	do       func(*call) (any, error)
}

// A param is one of a query.
type param struct {
	name, about string
	alias       string // another name for it
	schema      map[string]any
}

// Reasons why a route has no tool.
const (
	forPeople = "for the people who run the tracker: no agent makes projects, members or chats, or mends queues"
	forSocket = "for the runtime of an agent, not for its model"
	byOthers  = "the model has what it needs from other tools: steps and messages come in lists"
	rare      = "undoes or narrows what agents do; people do it, or the runtime of an agent"
)

// Routes returns all of them, in the order in which they are described. The caller owns the
// slice.
func Routes() []Route {
	all := routes()
	for i := range all {
		if all[i].status == 0 {
			all[i].status = 200
		}
		if all[i].many == 0 {
			all[i].many = maxBody
		}
	}
	return all
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

func text(name, about string) param {
	return param{name: name, about: about, schema: map[string]any{"type": "string"}}
}

func number(name, about string, least, most int) param {
	return param{name: name, about: about, schema: map[string]any{"type": "integer", "minimum": least, "maximum": most}}
}

func flag(name, about string) param {
	return param{name: name, about: about, schema: map[string]any{"type": "boolean"}}
}

func (p param) or(alias string) param { p.alias = alias; return p }

// paged are the parameters of a list, behind others.
func paged(others ...param) []param {
	return append(others, number("limit", "items of the page, default 50", 1, tracker.MaxPage), text("cursor", "next_cursor of the page before"))
}

func routes() []Route {
	var all []Route
	for _, some := range [][]Route{taskRoutes(), stepRoutes(), messageRoutes(), fileRoutes(), projectRoutes(), memberRoutes(), queueRoutes()} {
		all = append(all, some...)
	}
	return all
}

func taskRoutes() []Route {
	create := map[string]string{"project_id": "project_slug", "project": "project_slug", "assignee": "assignee_slug", "parent": "parent_id"}
	return []Route{
		{
			Method: "GET", Path: "/tasks", Scope: tracker.TasksRead, Tools: []string{"list_tasks"}, Summary: "list tasks, the newest first", name: "listTasks",
			query: paged(
				text("project_id", "a project's id or slug").or("project_slug"), text("status", "statuses, with commas between them"),
				text("assignee", "a member's slug, me, or none").or("assignee_slug"), text("labels", "labels, with commas; all must be there"),
				text("type", "task, bug, feature, epic or chore"), text("priority", "low, medium, high or urgent"), text("parent_id", "a task"),
				text("creator", "a member's slug"), text("watcher", "a member's slug"), text("q", "text in title, description or key"),
				flag("ready", "only what can be begun"),
			),
			answer: typeOf[tracker.Page[tracker.TaskOut]](), do: (*call).listTasks,
		},
		{
			Method: "POST", Path: "/tasks", Scope: tracker.TasksWrite, Tools: []string{"create_task"}, Summary: "make a task or a subtask", name: "createTask", status: 201,
			body: typeOf[tracker.CreateTask](), required: []string{"project_slug", "title"}, aliases: create, answer: typeOf[tracker.TaskOut](), do: (*call).createTask,
		},
		{
			Method: "GET", Path: "/tasks/{id}", Scope: tracker.TasksRead, Tools: []string{"get_task"}, Summary: "read a task", name: "getTask",
			answer: typeOf[tracker.TaskOut](), do: func(c *call) (any, error) { return c.service.GetTask(c.ctx(), c.at("id")) },
		},
		{
			Method: "PATCH", Path: "/tasks/{id}", Scope: tracker.TasksWrite, Tools: []string{"update_task", "assign_task"}, Summary: "change fields of a task",
			name: "updateTask", body: typeOf[tracker.UpdateTask](), aliases: create, answer: typeOf[tracker.TaskOut](), do: (*call).updateTask,
		},
		{
			Method: "DELETE", Path: "/tasks/{id}", Scope: tracker.TasksWrite, Reason: rare, Summary: "delete a task for good", name: "deleteTask", status: 204,
			do: func(c *call) (any, error) { return nil, c.service.DeleteTask(c.ctx(), c.at("id")) },
		},
		{
			Method: "POST", Path: "/tasks/{id}/take", Scope: tracker.TasksTake, Tools: []string{"take_task"}, Summary: "take a task that is free", name: "takeTask",
			body: typeOf[tracker.TakeTask](), answer: typeOf[tracker.TaskOut](), do: func(c *call) (any, error) {
				in := tracker.TakeTask{IdempotencyKey: c.key()}
				return with(c, &in, func() (any, error) { return c.service.TakeTask(c.ctx(), c.at("id"), in) })
			},
		},
		{
			Method: "POST", Path: "/tasks/{id}/reject", Scope: tracker.TasksTake, Tools: []string{"reject_task"}, Summary: "give a task back for a reason", name: "rejectTask",
			body: typeOf[tracker.RejectTask](), required: []string{"reason"}, answer: typeOf[tracker.Rejected](), do: func(c *call) (any, error) {
				in := tracker.RejectTask{IdempotencyKey: c.key()}
				return with(c, &in, func() (any, error) { return c.service.RejectTask(c.ctx(), c.at("id"), in) })
			},
		},
		{
			Method: "POST", Path: "/tasks/{id}/release", Scope: tracker.TasksTake, Reason: rare, Summary: "put a task back without rejecting it", name: "releaseTask",
			body: typeOf[tracker.ReleaseTask](), answer: typeOf[tracker.TaskOut](), do: func(c *call) (any, error) {
				var in tracker.ReleaseTask
				return with(c, &in, func() (any, error) { return c.service.ReleaseTask(c.ctx(), c.at("id"), in) })
			},
		},
		{
			Method: "POST", Path: "/tasks/{id}/watchers", Scope: tracker.TasksTake, Tools: []string{"watch_task"}, Summary: "be told of a task", name: "watchTask",
			body: typeOf[tracker.WatchTask](), answer: typeOf[tracker.Watching](), do: func(c *call) (any, error) {
				var in tracker.WatchTask
				return with(c, &in, func() (any, error) { return c.service.WatchTask(c.ctx(), c.at("id"), in) })
			},
		},
		{
			Method: "DELETE", Path: "/tasks/{id}/watchers/{slug}", Scope: tracker.TasksTake, Tools: []string{"unwatch_task"}, Summary: "be told of a task no more",
			name: "unwatchTask", answer: typeOf[tracker.Watching](),
			do: func(c *call) (any, error) { return c.service.UnwatchTask(c.ctx(), c.at("id"), c.at("slug")) },
		},
		{
			Method: "POST", Path: "/tasks/{id}/dependencies", Scope: tracker.TasksWrite, Tools: []string{"update_task"}, Summary: "make a task wait for another",
			name: "addDependency", body: typeOf[tracker.AddDependency](), required: []string{"blocked_by"}, answer: typeOf[tracker.TaskOut](), do: func(c *call) (any, error) {
				var in tracker.AddDependency
				return with(c, &in, func() (any, error) { return c.service.AddDependency(c.ctx(), c.at("id"), in) })
			},
		},
		{
			Method: "DELETE", Path: "/tasks/{id}/dependencies", Scope: tracker.TasksWrite, Tools: []string{"update_task"}, Summary: "make a task wait for another no more",
			name: "removeDependency", query: []param{text("blocked_by", "the task that it waits for")}, answer: typeOf[tracker.TaskOut](),
			do: func(c *call) (any, error) {
				return c.service.RemoveDependency(c.ctx(), c.at("id"), c.param("blocked_by"))
			},
		},
		{
			Method: "DELETE", Path: "/tasks/{id}/dependencies/{blocker}", Scope: tracker.TasksWrite, Tools: []string{"update_task"},
			Summary: "make a task wait for another no more", name: "removeDependencyOf", answer: typeOf[tracker.TaskOut](),
			do: func(c *call) (any, error) { return c.service.RemoveDependency(c.ctx(), c.at("id"), c.at("blocker")) },
		},
		{
			Method: "GET", Path: "/tasks/{id}/activity", Scope: tracker.TasksRead, Reason: forPeople, Summary: "read who changed a task, the latest first", name: "taskActivity",
			query: paged(), answer: typeOf[tracker.Page[tracker.Activity]](), do: func(c *call) (any, error) {
				return c.paged(func(p tracker.Paging) (any, error) { return c.service.TaskActivity(c.ctx(), c.at("id"), p) })
			},
		},
	}
}
