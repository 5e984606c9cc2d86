package store

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// substitute stands where a byte was that is no text.
const substitute = "\ufffd"

// words is a text as every engine keeps it: UTF-8 without zero bytes.
func words(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, substitute), "\x00", substitute)
}

// given are the arguments of a statement as the engine takes them. A text that cannot be
// kept cannot be found either: where the engine would refuse it, one stands for it that
// is longer than any name.
func (e *engine) given(args []any) []any {
	if !e.remote {
		return args
	}
	var changed []any
	for i, a := range args {
		text, ok := a.(string)
		if !ok || utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
			continue
		}
		if changed == nil {
			changed = slices.Clone(args)
		}
		changed[i] = strings.Repeat(substitute, maxName)
	}
	if changed != nil {
		return changed
	}
	return args
}
