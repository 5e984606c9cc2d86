package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/protocol/tracker"
)

// S1-047, S1-048, S1-055, C-11: a definition says what a tool does, what its parameters are, and
// requires no more than it must.
func TestS1_047_S1_048_S1_055_Definitions(t *testing.T) {
	take := definitionOf(t, "take_task")
	if take.Title == "" || !strings.Contains(take.Description, "atomically") || !strings.Contains(take.Description, "if it is free") {
		t.Errorf("take_task is %+v", take)
	}
	if !slices.Equal(take.InputSchema.Required, []string{"task_id"}) || take.InputSchema.Type != "object" {
		t.Errorf("take_task requires %q", take.InputSchema.Required)
	}
	if got := take.InputSchema.Properties["task_id"].Description; !strings.Contains(got, "TE-15") {
		t.Errorf("task_id is %q", got)
	}
	if _, ok := take.InputSchema.Properties["agent_slug"]; !ok {
		t.Error("take_task has no agent_slug")
	}
	list := definitionOf(t, "list_tasks")
	for _, name := range []string{"project_id", "status", "assignee", "labels"} {
		if list.InputSchema.Properties[name].Description == "" {
			t.Errorf("list_tasks does not say what %s is", name)
		}
	}
	if list.Title == "" || len(list.InputSchema.Required) != 0 {
		t.Errorf("list_tasks is %+v", list)
	}
}

// C-01, S1-055: the schema has the statuses of the tracker and no other, and each of its other
// spellings is resolved.
func TestC_01_StatusesAreAnEnum(t *testing.T) {
	var want []string
	for _, s := range tracker.Statuses() {
		want = append(want, string(s))
	}
	for _, name := range []string{"list_tasks", "create_task", "update_task"} {
		d := definitionOf(t, name)
		if got := d.InputSchema.Properties["status"].Enum; !slices.Equal(got, want) {
			t.Errorf("%s: the enum is %q", name, got)
		}
		for alias, value := range d.Aliases["status"] {
			if got, err := tracker.ParseStatus(alias); err != nil || string(got) != value {
				t.Errorf("%s: %s stands for %s, the tracker reads %s, %v", name, alias, value, got, err)
			}
		}
		for _, alias := range []string{"review", "inreview", "inprogress", "canceled"} {
			if d.Aliases["status"][alias] == "" {
				t.Errorf("%s: %s is not resolved", name, alias)
			}
		}
	}
	if list := definitionOf(t, "list_tasks"); !slices.Equal(list.InputSchema.Properties["statuses"].Items.Enum, want) || list.Aliases["statuses"]["review"] == "" {
		t.Errorf("list_tasks is %+v", list)
	}
}

type definition struct {
	Name, Title, Description string
	InputSchema              struct {
		Type       string
		Required   []string
		Properties map[string]struct {
			Description string
			Enum        []string
			Items       struct{ Enum []string }
		}
	}
	Aliases      map[string]map[string]string
	Translations map[string]sdk.Translation
}

func definitionOf(t *testing.T, name string) definition {
	t.Helper()
	var said struct{ Tools []definition }
	raw, err := module.Describe()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		t.Fatal(err)
	}
	for _, d := range said.Tools {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("there is no tool %s", name)
	return definition{}
}
