package main

import (
	"errors"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var update = sdk.Define(sdk.Spec{
	Name:  "update_task",
	Title: "Change a task",
	Description: "Changes the fields of a task that are given, and leaves the others. Statuses are backlog, todo, in_progress, in_review, done and " +
		"cancelled; when your work is finished, comment on it and set in_review. A move that is not allowed is refused with those that are.",
	Idempotent:   true,
	Translations: updateInRussian,
}, tracker.Told(updateTask, about(tracker.Text{En: "✅ Task %s is updated", Ru: "✅ Задача %s обновлена"})))

type updateInput struct {
	idInput
	Title        *string   `json:"title,omitempty" doc:"The new title." min:"1" max:"500"`
	Description  *string   `json:"description,omitempty" doc:"The new description, whole." max:"65536"`
	Type         *string   `json:"type,omitempty" doc:"What it is." enum:"task,bug,feature,epic,chore"`
	Status       *string   `json:"status,omitempty" doc:"The new status." enum:"backlog,todo,in_progress,in_review,done,cancelled" alias:"review=in_review,inreview=in_review,inprogress=in_progress,canceled=cancelled"`
	Priority     *string   `json:"priority,omitempty" doc:"How urgent it is." enum:"low,medium,high,urgent"`
	AssigneeSlug *string   `json:"assignee_slug,omitempty" doc:"Who shall do it; empty text for nobody." max:"64"`
	Assignee     *string   `json:"assignee,omitempty" doc:"The same as assignee_slug." max:"64"`
	ParentID     *string   `json:"parent_id,omitempty" doc:"The task that this is a part of; empty text for none." max:"128"`
	Labels       *[]string `json:"labels,omitempty" doc:"All labels that it shall have." max:"50"`
	BlockedBy    *[]string `json:"blocked_by,omitempty" doc:"All tasks that must be done before." max:"100"`
	Version      int64     `json:"version,omitempty" doc:"Change it only if it still has this version." min:"1"`
}

func updateTask(c *sdk.Call, in updateInput) (task tracker.Task, err error) {
	if in.Assignee != nil && in.AssigneeSlug != nil && *in.Assignee != *in.AssigneeSlug {
		return task, errors.New("assignee and assignee_slug are two names for the same: give one")
	}
	body := members{}
	put(body, "title", in.Title)
	put(body, "description", in.Description)
	put(body, "type", in.Type)
	put(body, "status", in.Status)
	put(body, "priority", in.Priority)
	put(body, "assignee_slug", in.Assignee)
	put(body, "assignee_slug", in.AssigneeSlug)
	put(body, "parent_id", in.ParentID)
	put(body, "labels", in.Labels)
	put(body, "blocked_by", in.BlockedBy)
	if len(body) == 0 {
		return task, errors.New("nothing is to be changed: give a field")
	}
	if in.Version > 0 {
		body["version"] = in.Version
	}
	return task, tracker.Patch(c, in.path(), body, &task)
}
