package main

import (
	"strings"
	"testing"
)

func TestSearch(t *testing.T) {
	n := notebook{t: t}
	n.add("Apples", "pears", "apple pie")
	for args, want := range map[string]string{
		`{"query":"apple"}`:           "3 1",
		`{"query":"APPLE about"}`:     "3 1",
		`{"query":" pie  apple "}`:    "3",
		`{"query":"t","limit":2}`:     "3 2 +",
		`{"query":"plums"}`:           "",
		`{"query":"apple plums"}`:     "",
		`{"query":" "}`:               "3 2 1",
		`{"query":"pears","limit":1}`: "2",
	} {
		if got := n.ids("note_search", args); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

func TestExcerpts(t *testing.T) {
	long := strings.Repeat("ä ", 100) + "HERE it is" + strings.Repeat(" ö", 100)
	for text, want := range map[string]string{
		"short here": "short here",
		long:         "… " + strings.Repeat("ä ", 20) + "HERE it is" + strings.Repeat(" ö", 43) + " …",
		"":           "",
		"İ here":     "İ here", // its lower case is longer
	} {
		got := note{Text: text}.excerpt([]string{"none", "here"})
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
