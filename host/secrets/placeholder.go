package secrets

import (
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
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if !seen[m[1]] {
			seen[m[1]] = true
			names = append(names, m[1])
		}
	}
	return names
}
