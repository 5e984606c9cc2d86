package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// cut leaves a part of the content.
func (o *fetchOutput) cut(start, most int) error {
	o.Length = utf8.RuneCountInString(o.Content)
	if start > 0 && start >= o.Length {
		return fmt.Errorf("start is %d, and %s has %d characters: there is no more", start, o.URL, o.Length)
	}
	o.Content, o.Next = part(o.Content, start, most)
	return nil
}

// part returns at most most characters of text from start, ending with a line if
// one ends in its second half, and where the next part starts, 0 for none.
func part(text string, start, most int) (cut string, next int) {
	from := offset(text, start)
	text = text[from:]
	end := offset(text, most)
	if end == len(text) {
		return text, 0
	}
	if line := strings.LastIndexByte(text[:end], '\n') + 1; line > end/2 {
		end = line
	}
	return text[:end], start + utf8.RuneCountInString(text[:end])
}

// offset is where in text the character begins that has n before it.
func offset(text string, n int) int {
	for at := range text {
		if n == 0 {
			return at
		}
		n--
	}
	return len(text)
}

// page writes an output as a text to read.
func page(o fetchOutput) string {
	var b strings.Builder
	if o.Title != "" {
		b.WriteString("Title: " + o.Title + "\n")
	}
	b.WriteString("URL: " + o.URL + "\n\n" + strings.TrimRight(o.Content, "\n"))
	switch {
	case o.Length == 0:
		b.WriteString("(There is nothing to read on this page; it may need a browser to run.)")
	case o.Next > 0:
		b.WriteString("\n\n(The page goes on, " + strconv.Itoa(o.Length) + " characters in all: call again with start " + strconv.Itoa(o.Next) + ".)")
	}
	if o.Links != nil {
		b.WriteString("\n\nLinks:\n")
	}
	for _, l := range o.Links {
		b.WriteString("- " + l.Text + " " + l.URL + "\n")
	}
	return b.String()
}
