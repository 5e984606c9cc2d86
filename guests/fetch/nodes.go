package main

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const maxLinks = 200

type link struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

// baseOf is what the page's links are relative to.
func baseOf(doc *html.Node, at *url.URL) *url.URL {
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Base && attr(n, "href") != "" {
			if base, err := at.Parse(attr(n, "href")); err == nil {
				return base
			}
			break
		}
	}
	return at
}

func titleOf(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Title && n.Namespace == "" {
			return textOf(n)
		}
	}
	return ""
}

// linksOf lists where a page leads, each place once.
func linksOf(doc *html.Node, base *url.URL) (links []link) {
	seen := map[string]bool{}
	for n := range doc.Descendants() {
		to := target(n, base)
		if to == "" || seen[to] {
			continue
		}
		seen[to] = true
		if links = append(links, link{textOf(n), to}); len(links) == maxLinks {
			break
		}
	}
	return links
}

// target is where a link leads, absolute and on the web, or "".
func target(n *html.Node, base *url.URL) string {
	href := strings.TrimSpace(attr(n, "href"))
	if n.DataAtom != atom.A || href == "" || href[0] == '#' {
		return ""
	}
	u, err := base.Parse(href)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return u.String()
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && !silent(d.Parent) {
			b.WriteString(d.Data)
		}
	}
	return oneSpaced(b.String())
}

func oneSpaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// silent reports whether a browser shows nothing of n.
func silent(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Head, atom.Svg, atom.Math, atom.Iframe, atom.Object,
		atom.Canvas, atom.Audio, atom.Video, atom.Button, atom.Select, atom.Input, atom.Textarea, atom.Dialog:
		return n.Type == html.ElementNode
	}
	for _, a := range n.Attr {
		if a.Key == "hidden" || a.Key == "aria-hidden" && a.Val == "true" || a.Key == "style" && hides(a.Val) {
			return true
		}
	}
	return false
}

// hides reports whether a style keeps what it is on from being read: words for
// machines that no person sees are not what was asked for.
func hides(style string) bool {
	style = strings.ToLower(strings.ReplaceAll(style, " ", ""))
	return strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
}
