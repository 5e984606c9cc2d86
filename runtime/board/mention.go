package board

import (
	"strings"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// mentioned returns the slugs behind an @ in a text, each once, in their order. What stands
// between backticks is code, and what follows a letter or a digit is an address.
func mentioned(text string) (slugs []string) {
	before := byte(' ')
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '`':
			i = pastCode(text, i)
		case c == '@' && !inWord(before):
			slug := slugAt(text[i+1:])
			if slug != "" && len(slugs) < 2*tracker.MaxMentions {
				slugs = appendOnce(slugs, slug)
				i += len(slug)
			}
		}
		before = text[min(i, len(text)-1)]
	}
	return slugs
}

// pastCode returns where the code ends that begins with the backticks at i. Without an end
// it is no code.
func pastCode(text string, i int) int {
	n := 0
	for i+n < len(text) && text[i+n] == '`' {
		n++
	}
	ticks := text[i : i+n]
	for at := i + n; at < len(text); {
		end := strings.Index(text[at:], ticks)
		if end < 0 {
			break
		}
		at += end
		run := 0
		for at+run < len(text) && text[at+run] == '`' {
			run++
		}
		if run == n {
			return at + n - 1
		}
		at += run
	}
	return i + n - 1
}

// inWord: bytes of letters outside ASCII count, so that an address in any script is one.
func inWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' || c == '@' || c == '/' || c >= 0x80
}

func slugAt(text string) string {
	n := 0
	for n < len(text) && n < tracker.MaxSlug && (isSlugByte(text[n])) {
		n++
	}
	return strings.ToLower(strings.TrimRight(text[:n], "-_"))
}

func isSlugByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-'
}

// appendOnce is for short lists.
func appendOnce(all []string, one string) []string {
	for _, have := range all {
		if have == one {
			return all
		}
	}
	return append(all, one)
}
