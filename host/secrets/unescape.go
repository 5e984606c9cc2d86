package secrets

import (
	"bytes"
	"html"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescaped is a text with its escapes replaced by what they stand for, and where
// they were.
type unescaped struct {
	text  []byte
	marks []mark
}

// A mark says where an escape ends: in the unescaped text and in the text itself,
// where it has size bytes.
type mark struct{ out, in, size int }

// unescape replaces the escapes that begin with lead. read returns what one at the
// beginning of text stands for and how long it is, 0 if it is none.
// Without escapes there are no marks, and the text is not there either.
func unescape(text []byte, lead byte, read func([]byte) (string, int)) (u unescaped) {
	for at, plain := 0, 0; ; { // plain is where what is not copied yet begins
		next := bytes.IndexByte(text[at:], lead)
		if next < 0 {
			if len(u.marks) > 0 {
				u.text = append(u.text, text[plain:]...)
			}
			return u
		}
		at += next
		meant, size := read(text[at:])
		if size == 0 {
			at++
			continue
		}
		if u.text == nil {
			u.text = make([]byte, 0, len(text))
		}
		u.text = append(append(u.text, text[plain:at]...), meant...)
		at += size
		plain = at
		u.marks = append(u.marks, mark{len(u.text), at, size})
	}
}

// origin returns where in the text itself a place of the unescaped text is.
func (u unescaped) origin(out int) int {
	i := sort.Search(len(u.marks), func(i int) bool { return u.marks[i].out > out })
	if i == 0 {
		return out
	}
	return u.marks[i-1].in + out - u.marks[i-1].out
}

// whole widens a span of the text itself so that it ends inside no escape.
func (u unescaped) whole(s span) span {
	if m, ok := u.around(s.from); ok {
		s.from = m.in - m.size
	}
	if m, ok := u.around(s.to); ok {
		s.to = m.in
	}
	return s
}

func (u unescaped) around(in int) (mark, bool) {
	i := sort.Search(len(u.marks), func(i int) bool { return u.marks[i].in > in })
	if i == len(u.marks) || u.marks[i].in-u.marks[i].size >= in {
		return mark{}, false
	}
	return u.marks[i], true
}

// percent reads an escape of a URL (RFC 3986, section 2.1).
func percent(text []byte) (string, int) {
	if len(text) < 3 {
		return "", 0
	}
	c, ok := hexadecimal(text[1:3])
	if !ok {
		return "", 0
	}
	return string([]byte{byte(c)}), 3
}

// backslash reads an escape of a JSON string, or of what other languages print.
func backslash(text []byte) (string, int) {
	const simple, meant = `"\/'abfnrtv`, "\"\\/'\a\b\f\n\r\t\v"
	if len(text) < 2 {
		return "", 0
	}
	if i := strings.IndexByte(simple, text[1]); i >= 0 {
		return meant[i : i+1], 2
	}
	switch text[1] {
	case 'x':
		if len(text) >= 4 {
			if n, ok := hexadecimal(text[2:4]); ok {
				return string([]byte{byte(n)}), 4
			}
		}
		return "", 0
	case 'U':
		if len(text) >= 10 {
			if n, ok := hexadecimal(text[2:10]); ok && utf8.ValidRune(n) {
				return string(n), 10
			}
		}
		return "", 0
	}
	r, ok := unit(text)
	if !ok {
		return "", 0
	}
	if !utf16.IsSurrogate(r) {
		return string(r), 6
	}
	low, ok := unit(text[6:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return "", 0
	}
	return string(r), 12
}

// entity reads a reference of HTML or XML.
func entity(text []byte) (string, int) {
	const longest = 10
	end := bytes.IndexByte(text[:min(len(text), longest)], ';')
	if end < 0 {
		return "", 0
	}
	written := string(text[:end+1])
	if meant := html.UnescapeString(written); meant != written {
		return meant, len(written)
	}
	return "", 0
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
