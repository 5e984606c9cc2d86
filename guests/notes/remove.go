package main

import (
	"fmt"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/kv"
)

var remove = sdk.Define(sdk.Spec{
	Name:        "note_remove",
	Title:       "Remove a note",
	Description: "Removes a note for ever, by its id. Use it for what is wrong or out of date, and to make room.",
	ClosedWorld: true,
}, removeNote)

func removeNote(c *sdk.Call, in idInput) (string, error) {
	removed, err := kv.Delete(c, keyOf(in.ID))
	if err != nil {
		return "", err
	}
	if !removed {
		return "", fmt.Errorf("there is no note %d: note_list shows what there is", in.ID)
	}
	return fmt.Sprintf("Note %d is removed.", in.ID), nil
}
