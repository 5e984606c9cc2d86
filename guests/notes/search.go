package main

import (
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
)

var search = sdk.Define(sdk.Spec{
	Name:  "note_search",
	Title: "Search notes",
	Description: "Finds notes by words: all of them must be in the title, the text or the tags, in any order, in upper or lower case, also " +
		"inside of longer words. Returns the newest first, each with the place where the first word was found. Other words for the same are " +
		"not found: try several.",
	ReadOnly:    true,
	ClosedWorld: true,
}, searchNotes)

type searchInput struct {
	Query string `json:"query" doc:"Words, with spaces between." min:"1" max:"200"`
	Limit int    `json:"limit" doc:"The most notes to return." default:"20" min:"1" max:"100"`
}

type searchOutput struct {
	Notes []found `json:"notes"`
	More  bool    `json:"more" doc:"Whether there are older ones that fit."`
}

type found struct {
	entry
	Excerpt string `json:"excerpt"`
}

func searchNotes(c *sdk.Call, in searchInput) (out searchOutput, err error) {
	words := strings.Fields(strings.ToLower(in.Query))
	err = eachNote(c, 0, func(n note) bool {
		switch {
		case !n.hasAll(words):
		case len(out.Notes) == in.Limit:
			out.More = true
		default:
			out.Notes = append(out.Notes, found{n.entry(), n.excerpt(words)})
		}
		return !out.More
	})
	return out, err
}
