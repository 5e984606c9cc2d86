package main

import (
	"slices"
	"testing"
)

func TestRemove(t *testing.T) {
	n := notebook{t: t}
	n.add("a")
	if got := n.call("note_remove", idInput{1}); got.IsError || got.Text != "Note 1 is removed." {
		t.Errorf("got %q", got.Text)
	}
	if got := n.call("note_remove", idInput{1}); !got.IsError || got.Text != "there is no note 1: note_list shows what there is" {
		t.Errorf("got %q", got.Text)
	}
	if keys := n.kv.Keys(); !slices.Equal(keys, []string{lastKey}) {
		t.Errorf("left are %q", keys)
	}
}
