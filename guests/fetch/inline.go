package main

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// inline writes n into a line. Line breaks in it are those of <br>.
func (r *renderer) inline(line *strings.Builder, n *html.Node) {
	switch {
	case n.Type == html.TextNode:
		line.WriteString(strings.Map(spaceOut, n.Data))
		return
	case n.Type != html.ElementNode || silent(n):
		return
	}
	switch n.DataAtom {
	case atom.Br:
		line.WriteByte('\n')
	case atom.Img:
		r.image(line, n)
	case atom.A:
		r.link(line, n)
	case atom.B, atom.Strong:
		r.marked(line, n, "**")
	case atom.I, atom.Em:
		r.marked(line, n, "*")
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		r.marked(line, n, "`")
	default:
		r.children(line, n)
	}
}

func (r *renderer) children(line *strings.Builder, n *html.Node) {
	for c := range n.ChildNodes() {
		r.inline(line, c)
	}
}

func spaceOut(c rune) rune {
	switch c {
	case '\n', '\r', '\t', '\f':
		return ' '
	case '\u00ad', '\u200b', '\ufeff': // break here if you must: a reader sees nothing
		return -1
	}
	return c
}

// marked puts a mark around what n holds, and leaves the spaces at its ends outside.
func (r *renderer) marked(line *strings.Builder, n *html.Node, mark string) {
	var inner strings.Builder
	r.children(&inner, n)
	text := strings.TrimSpace(inner.String())
	if r.plain || text == "" || strings.Contains(text, "\n") {
		line.WriteString(inner.String())
		return
	}
	before, after, _ := strings.Cut(inner.String(), text)
	line.WriteString(before + mark + text + mark + after)
}

func (r *renderer) link(line *strings.Builder, n *html.Node) {
	var inner strings.Builder
	r.children(&inner, n)
	text, to := oneSpaced(inner.String()), target(n, r.base)
	if r.plain || text == "" || to == "" {
		line.WriteString(inner.String())
		return
	}
	before, after := "", ""
	if strings.HasPrefix(inner.String(), " ") {
		before = " "
	}
	if strings.HasSuffix(inner.String(), " ") {
		after = " "
	}
	to = strings.ReplaceAll(strings.ReplaceAll(to, "(", "%28"), ")", "%29")
	line.WriteString(before + "[" + text + "](" + to + ")" + after)
}

// image writes what a picture shows, if it says so.
func (r *renderer) image(line *strings.Builder, n *html.Node) {
	alt := oneSpaced(attr(n, "alt"))
	switch {
	case alt == "":
	case r.plain:
		line.WriteString(alt)
	default:
		line.WriteString("![" + alt + "]")
	}
}
