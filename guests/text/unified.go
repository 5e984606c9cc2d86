package main

import (
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
)

// count returns how many lines a diff adds and removes.
func count(d udiff.UnifiedDiff) (added, removed int) {
	for _, hunk := range d.Hunks {
		for _, line := range hunk.Lines {
			switch line.Kind {
			case udiff.Insert:
				added++
			case udiff.Delete:
				removed++
			}
		}
	}
	return added, removed
}

// oneLine keeps a name from adding lines to the diff's head.
func oneLine(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, name)
}
