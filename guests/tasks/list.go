package main

import (
	"cmp"
	"errors"
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var list = sdk.Define(sdk.Spec{
	Name:  "list_tasks",
	Title: "List tasks",
	Description: "Lists tasks, the newest first, that fit all filters given. Use it to find work: assignee none and ready true are tasks " +
		"that can be taken. statuses takes several statuses where status takes one.",
	ReadOnly:     true,
	Translations: listInRussian,
}, tracker.Listed(listTasks, tracker.Text{En: "Tasks found: %d", Ru: "Найдено задач: %d"}, func(t tracker.Task) string {
	return t.Key + ": " + tracker.Cut(t.Title) + " (" + t.Status + ")"
}))

type listInput struct {
	ProjectID    string   `json:"project_id,omitempty" doc:"A project's id or slug." max:"128"`
	ProjectSlug  string   `json:"project_slug,omitempty" doc:"The same as project_id." max:"128"`
	Status       string   `json:"status,omitempty" doc:"Only tasks in this status." enum:"backlog,todo,in_progress,in_review,done,cancelled" alias:"review=in_review,inreview=in_review,inprogress=in_progress,canceled=cancelled"`
	Statuses     []string `json:"statuses,omitempty" doc:"Only tasks in one of these statuses, in place of status." max:"6" enum:"backlog,todo,in_progress,in_review,done,cancelled" alias:"review=in_review,inreview=in_review,inprogress=in_progress,canceled=cancelled"`
	Assignee     string   `json:"assignee,omitempty" doc:"A member's slug; me is the caller, none is nobody." max:"64"`
	AssigneeSlug string   `json:"assignee_slug,omitempty" doc:"The same as assignee." max:"64"`
	Labels       []string `json:"labels,omitempty" doc:"All of these must be there." max:"50"`
	Type         string   `json:"type,omitempty" doc:"What it is." enum:"task,bug,feature,epic,chore"`
	Priority     string   `json:"priority,omitempty" doc:"How urgent it is." enum:"low,medium,high,urgent"`
	ParentID     string   `json:"parent_id,omitempty" doc:"Only subtasks of this task." max:"128"`
	Query        string   `json:"q,omitempty" doc:"Text in title, description or key." max:"200"`
	Ready        bool     `json:"ready,omitempty" doc:"Only what can be begun: to do, and not blocked."`
	tracker.Paging
}

func listTasks(c *sdk.Call, in listInput) (page tracker.Page[tracker.Task], err error) {
	project, err := tracker.Either("project_id", in.ProjectID, "project_slug", in.ProjectSlug)
	if err != nil {
		return page, err
	}
	assignee, err := tracker.Either("assignee", in.Assignee, "assignee_slug", in.AssigneeSlug)
	if err != nil {
		return page, err
	}
	if in.Status != "" && len(in.Statuses) > 0 {
		return page, errors.New("status and statuses are two names for the same: give one")
	}
	statuses := cmp.Or(in.Status, strings.Join(in.Statuses, ","))
	query := map[string]string{
		"project_id": project, "status": statuses, "assignee": assignee, "labels": strings.Join(in.Labels, ","), "type": in.Type,
		"priority": in.Priority, "parent_id": in.ParentID, "q": in.Query,
	}
	if in.Ready {
		query["ready"] = "true"
	}
	return page, tracker.Get(c, tracker.Path("tasks"), in.In(query), &page)
}
