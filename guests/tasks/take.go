package main

import (
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

// agentInput names a task and whom it is about. It is no requirement: the tracker knows who
// asks.
type agentInput struct {
	idInput
	AgentSlug string `json:"agent_slug,omitempty" doc:"The agent's slug; the caller if left out." max:"64"`
}

func (in agentInput) body() members {
	if in.AgentSlug == "" {
		return members{}
	}
	return members{"agent_slug": in.AgentSlug}
}

var take = sdk.Define(sdk.Spec{
	Name:  "take_task",
	Title: "Take a task",
	Description: "Assigns a task to you, atomically, if it is free, and sets it in_progress. If somebody was faster, the error says who has it. " +
		"Taking what you have already changes nothing.",
	Idempotent: true,
}, tracker.Told(takeTask, about(tracker.Text{En: "✅ Task %s is taken", Ru: "✅ Задача %s взята в работу"})))

func takeTask(c *sdk.Call, in agentInput) (task tracker.Task, err error) {
	return task, tracker.Post(c, in.path("take"), in.body(), &task)
}

var reject = sdk.Define(sdk.Spec{
	Name:        "reject_task",
	Title:       "Reject a task",
	Description: "Gives a task back that you cannot do, with the reason. It is then nobody's, and is not offered to you again.",
}, tracker.Told(rejectTask, func(l tracker.Language, r rejected) string {
	return tracker.Text{En: "✅ Task rejected: %s", Ru: "✅ Задача отклонена: %s"}.In(l, r.Reason)
}))

type rejectInput struct {
	idInput
	Reason string `json:"reason" doc:"Why, for whoever gave the task." min:"1" max:"4096"`
}

type rejected struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason"`
}

func rejectTask(c *sdk.Call, in rejectInput) (out rejected, err error) {
	return out, tracker.Post(c, in.path("reject"), members{"reason": in.Reason}, &out)
}

type watching struct {
	OK       bool     `json:"ok"`
	Watchers []string `json:"watchers"`
}

// sayWatching writes a text with the watchers.
func sayWatching(t tracker.Text) func(tracker.Language, watching) string {
	return func(l tracker.Language, w watching) string { return t.In(l, strings.Join(w.Watchers, ", ")) }
}

var watch = sdk.Define(sdk.Spec{
	Name:        "watch_task",
	Title:       "Watch a task",
	Description: "Subscribes you to what others do with a task: changes of its status, comments, a new assignee, a rejection.",
	Additive:    true,
	Idempotent:  true,
}, tracker.Told(watchTask, sayWatching(tracker.Text{En: "✅ Watched by: %s", Ru: "✅ Наблюдатели: %s"})))

func watchTask(c *sdk.Call, in agentInput) (out watching, err error) {
	return out, tracker.Post(c, in.path("watchers"), in.body(), &out)
}

var unwatch = sdk.Define(sdk.Spec{
	Name:        "unwatch_task",
	Title:       "Stop watching a task",
	Description: "Ends what watch_task began.",
	Idempotent:  true,
}, tracker.Told(unwatchTask, sayWatching(tracker.Text{En: "✅ Still watched by: %s", Ru: "✅ Остались наблюдатели: %s"})))

func unwatchTask(c *sdk.Call, in agentInput) (out watching, err error) {
	slug := in.AgentSlug
	if slug == "" {
		slug = "me"
	}
	return out, tracker.Delete(c, in.path("watchers", slug), &out)
}
