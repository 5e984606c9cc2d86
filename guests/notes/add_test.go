package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

// notebook calls the tools on one storage.
type notebook struct {
	t  *testing.T
	kv sdktest.KV
}

func (n *notebook) call(name string, args any) sdktest.Result {
	n.t.Helper()
	return sdktest.Host{KV: &n.kv}.Call(n.t, module, name, args)
}

// add adds notes with these titles, the text "about TITLE" and the tag "t".
func (n *notebook) add(titles ...string) {
	n.t.Helper()
	for _, title := range titles {
		if got := n.call("note_add", addInput{Title: title, Text: "about " + title, Tags: []string{"t"}}); got.IsError {
			n.t.Fatal(got.Text)
		}
	}
}

// ids are those of what a call lists, with a + if there are more.
func (n *notebook) ids(name, args string) string {
	n.t.Helper()
	var out struct {
		Notes []struct{ ID int }
		More  bool
	}
	n.call(name, args).Into(n.t, &out)
	var ids []string
	for _, e := range out.Notes {
		ids = append(ids, fmt.Sprint(e.ID))
	}
	if out.More {
		ids = append(ids, "+")
	}
	return strings.Join(ids, " ")
}

func TestAddGivesNumbersOnce(t *testing.T) {
	n := notebook{t: t}
	n.add("a", "b")
	n.call("note_remove", idInput{2})
	if got := n.call("note_add", `{"title":"c","text":"d"}`); got.Text != `{"id":3}` {
		t.Errorf("got %s, want 3", got.Text)
	}
}

func TestAddForSomeDays(t *testing.T) {
	n := notebook{t: t}
	if got := n.call("note_add", `{"title":"a","text":"b","days":2}`); got.IsError {
		t.Fatal(got.Text)
	}
	n.kv.Pass(47 * time.Hour)
	if got := n.ids("note_list", `{}`); got != "1" {
		t.Errorf("got %q before its end", got)
	}
	n.kv.Pass(2 * time.Hour)
	if got := n.ids("note_list", `{}`); got != "" {
		t.Errorf("got %q after its end", got)
	}
}

func TestAddWhenFull(t *testing.T) {
	n := notebook{t: t}
	big := addInput{Title: "a", Text: strings.Repeat("x", 50_000)}
	var last sdktest.Result
	for range 22 { // 21 have over 1 MiB
		last = n.call("note_add", big)
	}
	if !last.IsError || !strings.HasPrefix(last.Text, "the note is not kept: kv_set: the module would keep ") {
		t.Errorf("got %q", last.Text)
	}
	n = notebook{t: t}
	for id := range maxNotes {
		n.kv.Put(keyOf(id+1), `{}`)
	}
	if got := n.call("note_add", `{"title":"a","text":"b"}`); got.Text != "there are 900 notes, at most 900: remove some with note_remove" {
		t.Errorf("got %q", got.Text)
	}
}
