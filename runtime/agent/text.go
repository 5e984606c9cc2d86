package agent

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// short cuts a text to most bytes and says so.
func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes more)", s[:cut], len(s)-cut)
}

// quoted shows what came from outside.
func quoted(s string) string { return strconv.Quote(short(s, 60)) }

// visible writes what a person could not see, or would see at another place, as JSON
// writes it in a string.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		switch {
		case !hidden(c):
			b.WriteRune(c)
		case c > 0xFFFF:
			fmt.Fprintf(&b, `\u{%x}`, c)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

func hidden(c rune) bool {
	return !unicode.IsGraphic(c) || unicode.Is(unicode.Cf, c) || unicode.In(c, unicode.Zl, unicode.Zp) ||
		unicode.Is(unicode.Variation_Selector, c) || c != ' ' && unicode.Is(unicode.Zs, c)
}
