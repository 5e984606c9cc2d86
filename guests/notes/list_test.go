package main

import (
	"testing"
	"time"
)

func TestList(t *testing.T) {
	n := notebook{t: t}
	n.add("a", "b", "c")
	if got := n.call("note_add", `{"title":"d","text":"e","tags":["Other"]}`); got.IsError {
		t.Fatal(got.Text)
	}
	for args, want := range map[string]string{
		`{}`:                     "4 3 2 1",
		`{"limit":2}`:            "4 3 +",
		`{"limit":4}`:            "4 3 2 1",
		`{"limit":2,"before":3}`: "2 1",
		`{"tag":"other"}`:        "4",
		`{"tag":"T","limit":2}`:  "3 2 +",
		`{"tag":"none"}`:         "",
	} {
		if got := n.ids("note_list", args); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

func TestListEntry(t *testing.T) {
	n := notebook{t: t}
	n.add("a")
	var out listOutput
	n.call("note_list", nil).Into(t, &out)
	if e := out.Notes[0]; e.Title != "a" || len(e.Tags) != 1 || time.Since(e.Added) > time.Hour || e.Added.Location() != time.UTC {
		t.Errorf("got %+v", e)
	}
}
