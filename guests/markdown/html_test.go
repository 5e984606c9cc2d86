package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestMarkdownToHTML(t *testing.T) {
	for _, c := range []struct {
		in   htmlInput
		want string
	}{
		{htmlInput{}, ""},
		{htmlInput{Markdown: "# Hi *you*"}, "<h1>Hi <em>you</em></h1>\n"},
		{htmlInput{Markdown: "# Hi", HeadingIDs: true}, "<h1 id=\"hi\">Hi</h1>\n"},
		{htmlInput{Markdown: "~~a~~ https://example.org"}, "<p><del>a</del> <a href=\"https://example.org\">https://example.org</a></p>\n"},
		{htmlInput{Markdown: "|a|\n|-|\n|1|"},
			"<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n</tr>\n</tbody>\n</table>\n"},
		{htmlInput{Markdown: "a\nb", HardBreaks: true}, "<p>a<br>\nb</p>\n"},
		{htmlInput{Markdown: "<b>x</b> [l](javascript:y)"}, "<p><!-- raw HTML omitted -->x<!-- raw HTML omitted --> <a href=\"\">l</a></p>\n"},
		{htmlInput{Markdown: "<b>x</b> [l](javascript:y)", AllowHTML: true}, "<p><b>x</b> <a href=\"javascript:y\">l</a></p>\n"},
	} {
		if got := sdktest.Call(t, module, "markdown_to_html", c.in); got.Text != c.want || got.IsError {
			t.Errorf("%+v: got %q, want %q", c.in, got.Text, c.want)
		}
	}
}
