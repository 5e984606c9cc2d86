package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestTextStats(t *testing.T) {
	for text, want := range map[string]statsOutput{
		"":                        {},
		"one two three":           {Characters: 13, Words: 3, Sentences: 1, Lines: 1, Bytes: 13, ReadingSeconds: 1},
		"Hi! It's 3.5 km.\nGo?\n": {Characters: 21, Words: 5, Sentences: 3, Lines: 2, Bytes: 21, ReadingSeconds: 2},
		"👩‍👩‍👧 Grüße":             {Characters: 7, Words: 1, Sentences: 1, Lines: 1, Bytes: 26, ReadingSeconds: 1},
		"\r\n--\r\n":              {Characters: 4, Lines: 2, Bytes: 6},
		"你好,世界。":                  {Characters: 6, Words: 4, Sentences: 1, Lines: 1, Bytes: 16, ReadingSeconds: 1},
	} {
		var got statsOutput
		sdktest.Call(t, module, "text_stats", statsInput{text}).Into(t, &got)
		if got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}

func TestTextDiff(t *testing.T) {
	for _, c := range []struct {
		args, text string
		want       diffOutput
	}{
		{`{"before":"a\n","after":"a\n"}`, "The texts are the same.", diffOutput{Equal: true}},
		{`{"before":"a\nb\nc\n","after":"a\nB\nc\nd","context":1}`, "",
			diffOutput{Added: 2, Removed: 1, Diff: "--- before\n+++ after\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n\\ No newline at end of file\n"}},
		{`{"before":"","after":"x\n","before_name":"old\n+","after_name":"new"}`, "",
			diffOutput{Added: 1, Diff: "--- old +\n+++ new\n@@ -0,0 +1 @@\n+x\n"}},
	} {
		var got diffOutput
		r := sdktest.Call(t, module, "text_diff", c.args)
		r.Into(t, &got)
		if c.text == "" {
			c.text = c.want.Diff
		}
		if got != c.want || r.Text != c.text {
			t.Errorf("%s: got %+v and %q", c.args, got, r.Text)
		}
	}
}
