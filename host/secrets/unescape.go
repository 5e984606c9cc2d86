package secrets

import (
	"html"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ways are kinds of escapes that are looked for together.
type ways uint8

const (
	percents ways = 1 << iota
	backslashes
	entities
	allWays = percents | backslashes | entities
)

// next returns where the next character is that may begin an escape.
func (w ways) next(text []byte, at int) int {
	for ; at < len(text); at++ {
		switch c := text[at]; {
		case c == '%' && w&percents != 0, c == '\\' && w&backslashes != 0, c == '&' && w&entities != 0:
			return at
		}
	}
	return at
}

// read appends what the escape at the beginning of text stands for, which is never
// longer, and returns how long it is, 0 if it is none.
func read(to, text []byte) ([]byte, int) {
	switch text[0] {
	case '%':
		return percent(to, text)
	case '\\':
		return backslash(to, text)
	}
	return entity(to, text)
}

// each visits the escapes of text: where one is, how long, and how long what it
// stands for, until visit returns false.
func (w ways) each(text []byte, visit func(at, size, meant int) bool) {
	var room [16]byte
	for at := w.next(text, 0); at < len(text); at = w.next(text, at) {
		meant, size := read(room[:0], text[at:])
		if size > 0 && !visit(at, size, len(meant)) {
			return
		}
		at += max(size, 1)
	}
}

// in reports whether text has an escape.
func (w ways) in(text []byte) (found bool) {
	w.each(text, func(int, int, int) bool { found = true; return false })
	return found
}

// decode replaces escapes by what they stand for, and says how many there were. The
// result is in to, which may be text itself.
func (w ways) decode(to, text []byte) (plain []byte, count int) {
	plain = to[:0]
	for at := 0; ; {
		next := w.next(text, at)
		plain = append(plain, text[at:next]...)
		if next == len(text) {
			return plain, count
		}
		size := 0
		if plain, size = read(plain, text[next:]); size == 0 {
			plain, size = append(plain, text[next]), 1
		} else {
			count++
		}
		at = next + size
	}
}

// border is where the i-th end of spans is that are in order and apart.
func border(spans []span, i int) *int {
	if i%2 == 0 {
		return &spans[i/2].from
	}
	return &spans[i/2].to
}

// origins moves spans of what decode makes of text to where they are in text.
func (w ways) origins(text []byte, spans []span) {
	i, in, out := 0, 0, 0 // behind the last escape
	w.each(text, func(at, size, meant int) bool {
		behind := out + at - in + meant
		for ; i < 2*len(spans) && *border(spans, i) < behind; i++ {
			*border(spans, i) += in - out
		}
		in, out = at+size, behind
		return i < 2*len(spans)
	})
	for ; i < 2*len(spans); i++ {
		*border(spans, i) += in - out
	}
}

// whole widens spans of text so that none ends inside an escape.
func (w ways) whole(text []byte, spans []span) {
	i := 0
	w.each(text, func(at, size, _ int) bool {
		for ; i < 2*len(spans) && *border(spans, i) < at+size; i++ {
			switch b := border(spans, i); {
			case *b <= at:
			case i%2 == 0:
				*b = at
			default:
				*b = at + size
			}
		}
		return i < 2*len(spans)
	})
}

// percent reads an escape of a URL (RFC 3986, section 2.1).
func percent(to, text []byte) ([]byte, int) {
	if len(text) < 3 {
		return to, 0
	}
	c, ok := hexadecimal(text[1:3])
	if !ok {
		return to, 0
	}
	return append(to, byte(c)), 3
}

// backslash reads an escape of a JSON string, or of what other languages print.
func backslash(to, text []byte) ([]byte, int) {
	const simple, meant = `"\/'abfnrtv`, "\"\\/'\a\b\f\n\r\t\v"
	if len(text) < 2 {
		return to, 0
	}
	if i := strings.IndexByte(simple, text[1]); i >= 0 {
		return append(to, meant[i]), 2
	}
	switch text[1] {
	case 'x':
		if len(text) >= 4 {
			if n, ok := hexadecimal(text[2:4]); ok {
				return append(to, byte(n)), 4
			}
		}
		return to, 0
	case 'U':
		if len(text) >= 10 {
			if n, ok := hexadecimal(text[2:10]); ok && utf8.ValidRune(n) {
				return utf8.AppendRune(to, n), 10
			}
		}
		return to, 0
	}
	r, ok := unit(text)
	if !ok {
		return to, 0
	}
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(to, r), 6
	}
	low, ok := unit(text[6:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return to, 0
	}
	return utf8.AppendRune(to, r), 12
}

// maxEntity bounds a reference: no name is longer, and zeros before a number are
// of no use.
const maxEntity = 64

// entity reads a reference of HTML or XML. As browsers do, it takes a number, and
// the names that stand for markup, without the semicolon too.
func entity(to, text []byte) ([]byte, int) {
	if len(text) > 1 && text[1] == '#' {
		return numbered(to, text)
	}
	end := 1
	for end < min(len(text), maxEntity) && isAlphanumeric(text[end]) {
		end++
	}
	for _, known := range [...]struct {
		name string
		is   byte
	}{{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}} {
		if size := 1 + len(known.name); len(text) >= size && string(text[1:size]) == known.name {
			if size < len(text) && text[size] == ';' {
				size++
			}
			return append(to, known.is), size
		}
	}
	if end == 1 || end == len(text) || text[end] != ';' {
		return to, 0
	}
	written := string(text[:end+1])
	if meant := html.UnescapeString(written); meant != written && len(meant) <= len(written) {
		return append(to, meant...), len(written)
	}
	return to, 0
}

// numbered reads a reference by number.
func numbered(to, text []byte) ([]byte, int) {
	at, base := 2, rune(10)
	if len(text) > 2 && text[2]|0x20 == 'x' {
		at, base = 3, 16
	}
	n, first := rune(0), at
	for ; at < min(len(text), maxEntity); at++ {
		digit, ok := hexadecimal(text[at : at+1])
		if !ok || digit >= base {
			break
		}
		if n = n*base + digit; n > utf8.MaxRune {
			return to, 0
		}
	}
	if at == first || !utf8.ValidRune(n) {
		return to, 0
	}
	if at < len(text) && text[at] == ';' {
		at++
	}
	return utf8.AppendRune(to, n), at
}

func isAlphanumeric(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
}

// unit reads \uXXXX.
func unit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	return hexadecimal(text[2:6])
}

func hexadecimal(digits []byte) (n rune, ok bool) {
	for _, c := range digits {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			n = n<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}
