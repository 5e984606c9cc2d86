package main

import (
	"errors"
	"strconv"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

type taskInput struct {
	TaskID string `json:"task_id" doc:"The task's id, its key such as TE-15, or #15." min:"1" max:"128"`
}

// stepInput names a step.
type stepInput struct {
	taskInput
	StepID sdk.Ref `json:"step_id,omitempty" doc:"The step's id, or its index from 0 on." max:"128"`
	Index  *int    `json:"index,omitempty" doc:"The step's index from 0 on, in place of step_id." min:"0"`
}

func (in stepInput) path() (string, error) {
	ref := string(in.StepID)
	switch {
	case ref == "" && in.Index == nil:
		return "", errors.New("step_id is missing: list_steps says which there are")
	case ref == "":
		ref = strconv.Itoa(*in.Index)
	case in.Index != nil && ref != strconv.Itoa(*in.Index):
		return "", errors.New("step_id and index name a step each: give one")
	}
	return tracker.Path("tasks", in.TaskID, "steps", ref), nil
}

func about(t tracker.Text) func(tracker.Language, tracker.Step) string {
	return func(l tracker.Language, s tracker.Step) string { return t.In(l, s.Index, s.Title) }
}
