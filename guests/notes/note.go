package main

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// note is one note, as it is kept and as it is read. ID is that of its key.
type note struct {
	ID    int       `json:"id,omitempty"`
	Title string    `json:"title"`
	Text  string    `json:"text"`
	Tags  []string  `json:"tags,omitempty"`
	Added time.Time `json:"added"`
}

// entry is a note in a list.
type entry struct {
	ID    int       `json:"id"`
	Title string    `json:"title"`
	Tags  []string  `json:"tags,omitempty"`
	Added time.Time `json:"added"`
}

func (n note) entry() entry { return entry{n.ID, n.Title, n.Tags, n.Added} }

func (n note) hasTag(tag string) bool {
	return slices.ContainsFunc(n.Tags, func(t string) bool { return strings.EqualFold(t, tag) })
}

func (n note) hasAll(words []string) bool {
	text := strings.ToLower(n.Title + "\n" + n.Text + "\n" + strings.Join(n.Tags, "\n"))
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// excerpt is the text around the first of the words that is in it, or its beginning.
func (n note) excerpt(words []string) string {
	const before, after = 60, 140
	lower, at := strings.ToLower(n.Text), 0
	if len(lower) == len(n.Text) { // else positions differ
		for _, w := range words {
			if i := strings.Index(lower, w); i >= 0 {
				at = i
				break
			}
		}
	}
	from, to := border(n.Text, at-before), border(n.Text, at+after)
	text := strings.Join(strings.Fields(n.Text[from:to]), " ")
	if from > 0 {
		text = "… " + text
	}
	if to < len(n.Text) {
		text += " …"
	}
	return text
}

// border returns the beginning of the character at i, within the text.
func border(text string, i int) int {
	i = max(0, min(i, len(text)))
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}
