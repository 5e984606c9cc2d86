package main

import (
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// renderer writes a page as Markdown, or as plain text without links and marks.
type renderer struct {
	base  *url.URL
	plain bool
	depth int // of lists and quotes
}

// maxNesting is how deep lists and quotes are indented. A page could nest so deep
// that indenting is most of it.
const maxNesting = 8

func render(n *html.Node, base *url.URL, plain bool) string {
	return strings.Join((&renderer{base: base, plain: plain}).blocks(n), "\n\n")
}

// blocks returns what n holds, a paragraph, list, heading and so on each.
func (r *renderer) blocks(n *html.Node) (out []string) {
	var line strings.Builder
	flush := func() {
		if text := trimLines(line.String()); text != "" {
			out = append(out, text)
		}
		line.Reset()
	}
	for c := range n.ChildNodes() {
		switch {
		case silent(c):
		case isBlock(c):
			flush()
			out = append(out, r.block(c)...)
		default:
			r.inline(&line, c)
		}
	}
	flush()
	return out
}

// isBlock reports whether n begins on a new line, itself or by what is in it.
func isBlock(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Center, atom.Dd, atom.Details, atom.Div, atom.Dl,
		atom.Dt, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5,
		atom.H6, atom.Header, atom.Hr, atom.Html, atom.Li, atom.Main, atom.Nav, atom.Ol, atom.P, atom.Pre, atom.Section,
		atom.Summary, atom.Table, atom.Ul:
		return true
	case atom.A, atom.Span, atom.B, atom.Strong, atom.I, atom.Em, atom.Font, atom.Ins, atom.Del, atom.Label, 0:
		for c := range n.ChildNodes() {
			if isBlock(c) {
				return true
			}
		}
	}
	return false
}

func (r *renderer) block(n *html.Node) []string {
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return r.heading(n)
	case atom.Hr:
		return []string{"---"}
	case atom.Pre:
		return r.pre(n)
	case atom.Blockquote:
		return r.indented(n, "> ", "> ")
	case atom.Ul, atom.Ol:
		return r.list(n)
	case atom.Dd:
		return r.indented(n, "  ", "  ")
	case atom.Li: // outside of a list
		return r.indented(n, "- ", "  ")
	case atom.Table:
		return r.table(n)
	}
	return r.blocks(n)
}

func (r *renderer) heading(n *html.Node) []string {
	text := r.text(n)
	switch {
	case text == "":
		return nil
	case r.plain:
		return []string{text}
	}
	return []string{strings.Repeat("#", int(n.Data[1]-'0')) + " " + text}
}

// text is what n holds, on one line.
func (r *renderer) text(n *html.Node) string {
	var line strings.Builder
	r.children(&line, n)
	return oneSpaced(line.String())
}

func (r *renderer) pre(n *html.Node) []string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	text := strings.Trim(b.String(), "\n")
	if r.plain || text == "" {
		return []string{text}
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return []string{fence + "\n" + text + "\n" + fence}
}

func (r *renderer) list(n *html.Node) []string {
	var items []string
	for c := range n.ChildNodes() {
		if c.Type != html.ElementNode || silent(c) {
			continue
		}
		mark := "- "
		if n.DataAtom == atom.Ol {
			mark = strconv.Itoa(len(items)+1) + ". "
		}
		if item := r.indented(c, mark, strings.Repeat(" ", len(mark))); item != nil {
			items = append(items, strings.ReplaceAll(item[0], "\n\n", "\n"))
		}
	}
	if items == nil {
		return nil
	}
	return []string{strings.Join(items, "\n")}
}

// indented returns what n holds as one block, with first before its first line and
// rest before the others.
func (r *renderer) indented(n *html.Node, first, rest string) []string {
	r.depth++
	inner := r.blocks(n)
	if r.depth--; r.depth >= maxNesting || inner == nil {
		return inner
	}
	lines := strings.Split(strings.Join(inner, "\n\n"), "\n")
	for i, line := range lines {
		switch {
		case i == 0:
			lines[i] = first + line
		case line != "" || rest[0] == '>':
			lines[i] = strings.TrimRight(rest+line, " ")
		}
	}
	return []string{strings.Join(lines, "\n")}
}

// trimLines takes away white space that a browser would not show: at the ends of
// lines, and more than one space.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = oneSpaced(line)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
