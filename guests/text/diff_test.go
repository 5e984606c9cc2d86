package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

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
