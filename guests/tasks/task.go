package main

import (
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

// idInput names one task.
type idInput struct {
	TaskID string `json:"task_id" doc:"The task's id, its key such as TE-15, or #15." min:"1" max:"128"`
}

func (in idInput) path(below ...string) string {
	return tracker.Path(append([]string{"tasks", in.TaskID}, below...)...)
}

// about writes a text with the key of the task.
func about(t tracker.Text) func(tracker.Language, tracker.Task) string {
	return func(l tracker.Language, task tracker.Task) string { return t.In(l, task.Key) }
}

// members is a JSON object in the making.
type members map[string]any

// put adds what was given.
func put[T any](m members, name string, value *T) {
	if value != nil {
		m[name] = *value
	}
}

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
