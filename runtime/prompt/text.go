package prompt

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Short cuts a text to most bytes and says so.
func Short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes more)", s[:cut], len(s)-cut)
}

// Quoted shows what came from outside.
func Quoted(s string) string { return strconv.Quote(Short(s, 60)) }
