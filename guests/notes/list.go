package main

import "github.com/hutch-run/hutch/guests/sdk"

var list = sdk.Define(sdk.Spec{
	Name:  "note_list",
	Title: "List notes",
	Description: "Lists notes by title, the newest first, with their ids and tags. Look here at the start of work, and before you add a " +
		"note that may be there already. The text comes with note_get. More than limit: call again with before set to the last id.",
	ReadOnly:    true,
	ClosedWorld: true,
}, listNotes)

type listInput struct {
	Tag    string `json:"tag,omitempty" doc:"Only notes with this tag."`
	Before int    `json:"before,omitempty" doc:"Only notes that are older than the one with this id." min:"1"`
	Limit  int    `json:"limit" doc:"The most notes to list." default:"50" min:"1" max:"200"`
}

type listOutput struct {
	Notes []entry `json:"notes"`
	More  bool    `json:"more" doc:"Whether there are older ones."`
}

func listNotes(c *sdk.Call, in listInput) (out listOutput, err error) {
	err = eachNote(c, in.Before, func(n note) bool {
		switch {
		case in.Tag != "" && !n.hasTag(in.Tag):
		case len(out.Notes) == in.Limit:
			out.More = true
		default:
			out.Notes = append(out.Notes, n.entry())
		}
		return !out.More
	})
	return out, err
}
