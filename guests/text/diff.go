package main

import (
	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/hutch-run/hutch/guests/sdk"
)

var diff = sdk.Define(sdk.Spec{
	Name:  "text_diff",
	Title: "Compare two texts",
	Description: "Compares two texts line by line and returns a unified diff, as git and patch write it, with the numbers of lines " +
		"added and removed. The diff is empty if the texts are the same. Use it to see or show exactly what changed; " +
		"a difference in white space or in the last line break counts.",
}, compare)

type diffInput struct {
	Before     string `json:"before" doc:"The old text."`
	After      string `json:"after" doc:"The new text."`
	BeforeName string `json:"before_name" doc:"What the diff calls the old text." default:"before" max:"200"`
	AfterName  string `json:"after_name" doc:"What the diff calls the new text." default:"after" max:"200"`
	Context    int    `json:"context" doc:"Unchanged lines around a change." default:"3" min:"1" max:"1000"`
}

type diffOutput struct {
	Equal   bool   `json:"equal"`
	Added   int    `json:"added" doc:"Lines only in the new text."`
	Removed int    `json:"removed" doc:"Lines only in the old text."`
	Diff    string `json:"diff"`
}

// Text is the diff itself, which is what people paste.
func (o diffOutput) Text() string {
	if o.Equal {
		return "The texts are the same."
	}
	return o.Diff
}

func compare(_ *sdk.Call, in diffInput) (diffOutput, error) {
	if in.Before == in.After {
		return diffOutput{Equal: true}, nil
	}
	edits := udiff.Lines(in.Before, in.After)
	unified, err := udiff.ToUnifiedDiff(oneLine(in.BeforeName), oneLine(in.AfterName), in.Before, edits, in.Context)
	if err != nil {
		return diffOutput{}, err
	}
	added, removed := count(unified)
	return diffOutput{Added: added, Removed: removed, Diff: unified.String()}, nil
}
