package main

import (
	"fmt"
	"time"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/kv"
)

var add = sdk.Define(sdk.Spec{
	Name:  "note_add",
	Title: "Add a note",
	Description: "Keeps a note for later conversations: a decision, a preference, where something was found. Returns its id. Write it so " +
		"that it makes sense to a reader who knows nothing of this conversation. Notes are not changed: remove the old one and add a new. " +
		"All notes together have 1 MiB, and there are at most 900. Keep no passwords or keys here.",
	Additive:    true,
	ClosedWorld: true,
}, addNote)

type addInput struct {
	Title string   `json:"title" doc:"One line to find it by." min:"1" max:"200"`
	Text  string   `json:"text" doc:"The note." min:"1" max:"50000"`
	Tags  []string `json:"tags,omitempty" doc:"Words to group notes by." max:"10"`
	Days  int      `json:"days,omitempty" doc:"Forget it after so many days; for ever if left out." min:"1" max:"3650"`
}

type addOutput struct {
	ID int `json:"id"`
}

func addNote(c *sdk.Call, in addInput) (addOutput, error) {
	ids, err := noteIDs(c)
	if err != nil {
		return addOutput{}, err
	}
	if len(ids) >= maxNotes {
		return addOutput{}, fmt.Errorf("there are %d notes, at most %d: remove some with note_remove", len(ids), maxNotes)
	}
	id, err := nextID(c)
	if err != nil {
		return addOutput{}, err
	}
	n := note{Title: in.Title, Text: in.Text, Tags: in.Tags, Added: time.Now().UTC().Truncate(time.Second)}
	if err := kv.Set(c, keyOf(id), n, time.Duration(in.Days)*24*time.Hour); err != nil {
		return addOutput{}, fmt.Errorf("the note is not kept: %w", err)
	}
	return addOutput{ID: id}, nil
}
