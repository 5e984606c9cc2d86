package abi

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut returns text as it is if it has at most most bytes, else as much of its
// beginning as fits with an ellipsis behind it. It ends between characters.
func Cut(text string, most int) string {
	const ellipsis = "…"
	most = max(most, 0)
	switch {
	case len(text) <= most:
		return text
	case most < len(ellipsis):
		return text[:boundary(text, most)]
	}
	return text[:boundary(text, most-len(ellipsis))] + ellipsis
}

// boundary returns where the character begins that text[n] is part of. In what is
// no UTF-8 it looks no further back than a character can be long.
func boundary(text string, n int) int {
	for i := n; i > n-utf8.UTFMax && i >= 0; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return n
}

// OneLine returns what a stranger wrote as a line that can stand anywhere: in a log,
// on a terminal, in what a model reads: line breaks and tabs are spaces, what is
// [Hidden] or no UTF-8 is U+FFFD, and over most bytes it is cut as [Cut] does. It
// looks at no more of text than that takes.
func OneLine(text string, most int) string {
	var line strings.Builder
	for _, r := range text {
		if line.Len() > most {
			break
		}
		switch {
		case breaksLine(r):
			r = ' '
		case Hidden(r):
			r = utf8.RuneError
		}
		line.WriteRune(r)
	}
	return Cut(line.String(), most)
}

func breaksLine(r rune) bool {
	return '\t' <= r && r <= '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// Hidden reports whether r changes how the text around it is shown, or is not seen
// at all: controls, line breaks and tabs among them, what turns the direction of
// text, what has no width, tags. Variation selectors 15 and 16 are not hidden, for
// emoji.
func Hidden(r rune) bool { return unicode.Is(hiddenRunes, r) }

var hiddenRunes = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0000, Hi: 0x001F, Stride: 1}, // C0 controls
		{Lo: 0x007F, Hi: 0x009F, Stride: 1}, // delete, C1 controls
		{Lo: 0x00AD, Hi: 0x00AD, Stride: 1}, // soft hyphen
		{Lo: 0x034F, Hi: 0x034F, Stride: 1}, // grapheme joiner
		{Lo: 0x061C, Hi: 0x061C, Stride: 1}, // Arabic letter mark
		{Lo: 0x115F, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17B4, Hi: 0x17B5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180B, Hi: 0x180F, Stride: 1}, // Mongolian selectors
		{Lo: 0x200B, Hi: 0x200F, Stride: 1}, // zero width, direction marks
		{Lo: 0x2028, Hi: 0x202E, Stride: 1}, // separators, embeddings, overrides
		{Lo: 0x2060, Hi: 0x206F, Stride: 1}, // joiners, isolates, invisible operators
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xFE00, Hi: 0xFE0D, Stride: 1}, // variation selectors 1 to 14
		{Lo: 0xFEFF, Hi: 0xFEFF, Stride: 1}, // byte order mark
		{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1}, // half-width Hangul filler
		{Lo: 0xFFF0, Hi: 0xFFFB, Stride: 1}, // specials but the replacement character
	},
	R32: []unicode.Range32{
		{Lo: 0x1BCA0, Hi: 0x1BCA3, Stride: 1}, // shorthand format controls
		{Lo: 0x1D173, Hi: 0x1D17A, Stride: 1}, // musical format controls
		{Lo: 0xE0000, Hi: 0xE0FFF, Stride: 1}, // tags, variation selectors 17 to 256
	},
	LatinOffset: 3,
}
