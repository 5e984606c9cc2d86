package main

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/hutch-run/hutch/guests/sdk"
)

var toHTML = sdk.Define(sdk.Spec{
	Name:  "markdown_to_html",
	Title: "Markdown to HTML",
	Description: "Turns Markdown (CommonMark with GitHub's tables, task lists, strikethrough and links) into an HTML fragment, without " +
		"html or body around it. Use it before you put text into a page, a mail or a wiki. HTML inside the Markdown is left out, " +
		"and so are links to javascript: and the like, unless allow_html is true.",
}, render)

type htmlInput struct {
	Markdown   string `json:"markdown"`
	AllowHTML  bool   `json:"allow_html" doc:"Keep HTML and any link as they are. Only for Markdown from someone trusted." default:"false"`
	HardBreaks bool   `json:"hard_breaks" doc:"Make each line break a <br>, as chats do." default:"false"`
	HeadingIDs bool   `json:"heading_ids" doc:"Give headings ids to link to." default:"false"`
}

func render(_ *sdk.Call, in htmlInput) (string, error) {
	var parsing []parser.Option
	var rendering []renderer.Option
	if in.HeadingIDs {
		parsing = append(parsing, parser.WithAutoHeadingID())
	}
	if in.AllowHTML {
		rendering = append(rendering, html.WithUnsafe())
	}
	if in.HardBreaks {
		rendering = append(rendering, html.WithHardWraps())
	}
	md := goldmark.New(
		goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parsing...),
		goldmark.WithRendererOptions(rendering...),
	)
	var b strings.Builder
	err := md.Convert([]byte(in.Markdown), &b)
	return b.String(), err
}
