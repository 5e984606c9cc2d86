package router

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/hutch-run/hutch/protocol/tracker"
)

const (
	maxTools     = 200 // that a prompt names
	maxToolWords = 200 // bytes that it says of one
)

// prompt is the text that a turn about a task begins with. What others wrote in the task
// stands in a fence that it cannot close.
func (r *Router) prompt(i Item, t tracker.TaskOut) string {
	var b strings.Builder
	fmt.Fprintf(&b, r.text.title+"\n\n", oneLine(t.Key, tracker.MaxRef), oneLine(t.Title, tracker.MaxTitle))
	if words := printable(t.Description); words != "" {
		mark := fence(words)
		fmt.Fprintf(&b, "%s\n<%s>\n%s\n</%s>\n\n", r.text.fenced, mark, words, mark)
	}
	for _, p := range r.occasion(i, t) {
		b.WriteString(p + "\n\n")
	}
	if tools := r.o.Tools(); len(tools) > 0 {
		b.WriteString(r.text.tools + "\n")
		for n, tool := range tools {
			if n == maxTools {
				break
			}
			first, _, _ := strings.Cut(strings.TrimSpace(tool.Description), "\n")
			fmt.Fprintf(&b, "- %s: %s\n", oneLine(tool.Name, maxToolWords), oneLine(first, maxToolWords))
		}
		b.WriteString("\n")
	}
	b.WriteString(r.text.begin + "\n\n" + r.text.guide)
	return b.String()
}

// occasion says why the turn is now, where that is not plain.
func (r *Router) occasion(i Item, t tracker.TaskOut) (all []string) {
	if i.Kind == KindUnblocked && len(t.BlockedBy) > 0 {
		all = append(all, fmt.Sprintf(r.text.unblocked, oneLine(strings.Join(t.BlockedBy, ", "), maxWhy)))
	}
	switch {
	case i.Interrupted:
		all = append(all, r.text.interrupted)
	case i.Attempt > 1:
		all = append(all, r.text.again)
	}
	return all
}

// fence is a mark that does not stand in a text.
func fence(text string) string {
	lower := strings.ToLower(text)
	for n := 1; ; n++ {
		if mark := fmt.Sprintf("description-%d", n); !strings.Contains(lower, mark) {
			return mark
		}
	}
}

// printable is a text without what can be neither seen nor read.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, "\ufffd"))
}

// isBreak are the characters that separate words in one line.
func isBreak(c rune) bool {
	return unicode.IsSpace(c) || unicode.IsControl(c) || unicode.Is(unicode.Cf, c)
}
