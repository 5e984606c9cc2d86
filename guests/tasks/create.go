package main

import (
	"cmp"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var create = sdk.Define(sdk.Spec{
	Name:  "create_task",
	Title: "Create a task",
	Description: "Makes a task in a project, or with parent_id a subtask. Use subtasks for parts that others can work on; use add_step for a " +
		"checklist of your own. Returns the task with its key.",
	Additive:     true,
	Translations: createInRussian,
}, tracker.Told(createTask, about(tracker.Text{En: "✅ Task %s is created", Ru: "✅ Задача %s создана"})))

type createInput struct {
	ProjectSlug  string   `json:"project_slug,omitempty" doc:"The project's slug or id. Must be there." max:"128"`
	ProjectID    string   `json:"project_id,omitempty" doc:"The same as project_slug." max:"128"`
	Title        string   `json:"title" doc:"What is to be done, in one line." min:"1" max:"500"`
	Description  string   `json:"description,omitempty" doc:"All that is needed to do it." max:"65536"`
	Type         string   `json:"type,omitempty" doc:"task if left out." enum:"task,bug,feature,epic,chore"`
	Priority     string   `json:"priority,omitempty" doc:"medium if left out." enum:"low,medium,high,urgent"`
	Status       string   `json:"status,omitempty" doc:"todo if left out; backlog is not begun by anybody." enum:"backlog,todo,in_progress,in_review,done,cancelled" alias:"review=in_review,inreview=in_review,inprogress=in_progress,canceled=cancelled"`
	AssigneeSlug string   `json:"assignee_slug,omitempty" doc:"Who shall do it." max:"64"`
	Assignee     string   `json:"assignee,omitempty" doc:"The same as assignee_slug." max:"64"`
	ParentID     string   `json:"parent_id,omitempty" doc:"The task that this is a part of." max:"128"`
	Labels       []string `json:"labels,omitempty" doc:"Words to group tasks by." max:"50"`
	BlockedBy    []string `json:"blocked_by,omitempty" doc:"Tasks that must be done before." max:"100"`
}

func createTask(c *sdk.Call, in createInput) (task tracker.Task, err error) {
	project, err := tracker.Either("project_slug", in.ProjectSlug, "project_id", in.ProjectID)
	if err = cmp.Or(err, tracker.Need("project_slug", project)); err != nil {
		return task, err
	}
	assignee, err := tracker.Either("assignee_slug", in.AssigneeSlug, "assignee", in.Assignee)
	if err != nil {
		return task, err
	}
	body := members{"project_slug": project, "title": in.Title}
	for name, value := range map[string]string{
		"description": in.Description, "type": in.Type, "priority": in.Priority, "status": in.Status, "assignee_slug": assignee, "parent_id": in.ParentID,
	} {
		if value != "" {
			body[name] = value
		}
	}
	for name, value := range map[string][]string{"labels": in.Labels, "blocked_by": in.BlockedBy} {
		if len(value) > 0 {
			body[name] = value
		}
	}
	return task, tracker.Post(c, tracker.Path("tasks"), body, &task)
}
