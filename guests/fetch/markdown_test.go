package main

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func renderText(t *testing.T, page string, plain bool) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return render(doc, &url.URL{Scheme: "https", Host: "a.example", Path: "/dir/"}, plain)
}

func TestMarkdown(t *testing.T) {
	for page, want := range map[string]string{
		`a<b> b </b>c`:                               "a **b** c",
		`<p>a<p><p>b`:                                "a\n\nb",
		`a <a href=" x ">y</a> b`:                    "a [y](https://a.example/dir/x) b",
		`<a href="/p(1)">y</a>`:                      "[y](https://a.example/p%281%29)",
		`<a href="javascript:x">y</a>`:               "y",
		`<a href="x"><img src=i></a>`:                "",
		`<a href="x"><div>card</div></a>`:            "card",
		`<em><p>a</p></em>`:                          "a",
		`<code> x </code>`:                           "`x`",
		`a<br>b<br><br>`:                             "a\nb",
		`<h2> <a href=x>H</a> </h2>`:                 "## [H](https://a.example/dir/x)",
		`<h3></h3>`:                                  "",
		`<hr>`:                                       "---",
		"<pre>\n```\n</pre>":                         "````\n```\n````",
		`<ul><li><p>a</p><p>b</p><li></ul>`:          "- a\n  b",
		`<ol><li>a</ol>`:                             "1. a",
		`<dl><dt>a<dd>b</dl>`:                        "a\n\n  b",
		`<li>a`:                                      "- a",
		`<table><tr><td>a<td>b<tr><td>c</table>`:     "| a | b |\n| --- | --- |\n| c |  |",
		`<table><tr><td>a<tr><td>b</table>`:          "a\n\nb",
		`<table><tr><td><h1>a</h1><td>b</table>`:     "# a\n\nb",
		"a\u200bb\u00adc":                            "abc",
		`<template>a</template><div hidden>b</div>c`: "c",
		`<i aria-hidden=true>a</i><i style="VISIBILITY : hidden">b</i>c`: "c",
		`<svg><title>a</title></svg><!-- b -->c`:                         "c",
		`<blockquote></blockquote>`:                                      "",
		`<x-card><p>a</p></x-card>`:                                      "a",
	} {
		if got := renderText(t, page, false); got != want {
			t.Errorf("%s: got %q, want %q", page, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	const page = `<h1>H</h1><p><b>a</b> <a href=x>b</a> <img alt=c> <code>d</code></p><table><tr><td>e|<td>f</table><pre>g</pre>`
	if got, want := renderText(t, page, true), "H\n\na b c d\n\n| e| | f |\n\ng"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever is nested in whatever, the text is not much more than the page.
func TestDeepNesting(t *testing.T) {
	for _, tag := range []string{"blockquote", "ul><li", "div", "b", "span", "table><tr><td", "a href=x"} {
		page := strings.Repeat("<"+tag+">", 100) + strings.Repeat("x<br>", 10_000)
		if got := renderText(t, page, false); len(got) > 4*len(page) {
			t.Errorf("%s: %d bytes of %d", tag, len(got), len(page))
		}
	}
}

// FuzzRender: no page makes it fail, or write what is much longer.
func FuzzRender(f *testing.F) {
	f.Add(`<ul><li><table><tr><td><a href="x">b</a><pre>`)
	f.Add(`<blockquote><ol><li>x<br>y`)
	f.Fuzz(func(t *testing.T, page string) {
		doc, err := html.Parse(strings.NewReader(page))
		if err != nil {
			return
		}
		const perByte = 64 // a relative link becomes an absolute one
		if got := render(doc, &url.URL{Scheme: "https", Host: "a.example"}, false); len(got) > perByte*(len(page)+1) {
			t.Errorf("%d bytes of %d", len(got), len(page))
		}
	})
}
