package secrets

import (
	"bytes"
	"iter"
	"regexp"
	"strings"
)

// scheme begins a placeholder.
const scheme = "secret://"

// placeholder finds secret://NAME in a text.
var placeholder = regexp.MustCompile(regexp.QuoteMeta(scheme) + `([A-Za-z0-9][A-Za-z0-9_-]*)`)

// Placeholder returns what stands for a secret where its value must not be.
func Placeholder(name string) string { return scheme + name }

// Placeholders returns the names of the secrets that a text asks for, in order,
// each once.
func Placeholders(text string) (names []string) {
	if !strings.Contains(text, scheme) { // as nearly no text does
		return nil
	}
	seen := map[string]bool{}
	for found := range placeholders([]byte(text)) {
		if name := string(found); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// placeholders yields the names that a text asks for, as often as it does.
func placeholders(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			_, rest, ok := bytes.Cut(text, []byte(scheme))
			if !ok {
				return
			}
			size := 0
			for size < len(rest) && (isAlphanumeric(rest[size]) || size > 0 && (rest[size] == '_' || rest[size] == '-')) {
				size++
			}
			text = rest[size:]
			if size > 0 && !yield(rest[:size]) {
				return
			}
		}
	}
}
