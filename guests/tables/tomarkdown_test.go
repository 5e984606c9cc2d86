package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestCSVToMarkdown(t *testing.T) {
	for args, want := range map[string]string{
		`{"csv":"a,b\n1|2,\"x\ny\"\n"}`:                   "| a | b |\n| --- | --- |\n| 1\\|2 | x<br>y |\n",
		`{"csv":"1|2","delimiter":"pipe","header":false}`: "| column_1 | column_2 |\n| --- | --- |\n| 1 | 2 |\n",
		`{"csv":"a\n\"x\ry\"\n"}`:                         "| a |\n| --- |\n| x<br>y |\n",
		`{"csv":""}`:                                      "",
	} {
		if got := sdktest.Call(t, module, "csv_to_markdown", args); got.Text != want {
			t.Errorf("%s: got %q, want %q", args, got.Text, want)
		}
	}
}
