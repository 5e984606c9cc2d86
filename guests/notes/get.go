package main

import (
	"fmt"

	"github.com/hutch-run/hutch/guests/sdk"
)

var get = sdk.Define(sdk.Spec{
	Name:        "note_get",
	Title:       "Read a note",
	Description: "Returns a note with its whole text, by the id that note_list, note_search or note_add gave.",
	ReadOnly:    true,
	ClosedWorld: true,
}, getNote)

type idInput struct {
	ID int `json:"id" doc:"As note_add, note_list or note_search gave it." min:"1"`
}

func getNote(c *sdk.Call, in idInput) (note, error) {
	n, found, err := load(c, in.ID)
	if err == nil && !found {
		err = fmt.Errorf("there is no note %d: note_list shows what there is", in.ID)
	}
	return n, err
}
