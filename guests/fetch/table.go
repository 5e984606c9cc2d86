package main

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// table writes a table. One that only lays a page out, with other blocks in its
// cells or a single column, comes as what is in it.
func (r *renderer) table(n *html.Node) []string {
	var rows [][]string
	columns := 0
	for _, row := range rowsOf(n) {
		var cells []string
		for c := range row.ChildNodes() {
			if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
				continue
			}
			if holdsBlocks(c) {
				return r.cells(n)
			}
			cells = append(cells, r.cell(c))
		}
		if strings.Join(cells, "") != "" {
			rows, columns = append(rows, cells), max(columns, len(cells))
		}
	}
	if columns < 2 {
		return r.cells(n)
	}
	return []string{strings.Join(r.lines(rows, columns), "\n")}
}

func (r *renderer) cell(c *html.Node) string {
	if r.plain {
		return r.text(c)
	}
	return strings.ReplaceAll(r.text(c), "|", "\\|")
}

// lines writes the rows, the first as the head that Markdown wants.
func (r *renderer) lines(rows [][]string, columns int) (lines []string) {
	for i, cells := range rows {
		for len(cells) < columns {
			cells = append(cells, "")
		}
		lines = append(lines, "| "+strings.Join(cells, " | ")+" |")
		if i == 0 && !r.plain {
			lines = append(lines, strings.Repeat("| --- ", columns)+"|")
		}
	}
	return lines
}

// rowsOf returns a table's own rows, without those of tables in its cells.
func rowsOf(n *html.Node) (rows []*html.Node) {
	for c := range n.ChildNodes() {
		switch c.DataAtom {
		case atom.Tr:
			rows = append(rows, c)
		case atom.Thead, atom.Tbody, atom.Tfoot:
			rows = append(rows, rowsOf(c)...)
		}
	}
	return rows
}

func holdsBlocks(cell *html.Node) bool {
	for d := range cell.Descendants() {
		if isBlock(d) && d.DataAtom != atom.P && d.DataAtom != atom.Div {
			return true
		}
	}
	return false
}

// cells returns what is in the cells, one after the other.
func (r *renderer) cells(n *html.Node) (out []string) {
	for _, row := range rowsOf(n) {
		for c := range row.ChildNodes() {
			out = append(out, r.blocks(c)...)
		}
	}
	return out
}
