package main

import "testing"

func TestGet(t *testing.T) {
	n := notebook{t: t}
	n.add("a", "b")
	var got note
	n.call("note_get", idInput{2}).Into(t, &got)
	if got.ID != 2 || got.Title != "b" || got.Text != "about b" || got.Added.IsZero() {
		t.Errorf("got %+v", got)
	}
	if got := n.call("note_get", idInput{3}); !got.IsError || got.Text != "there is no note 3: note_list shows what there is" {
		t.Errorf("got %q", got.Text)
	}
}
