package sdk

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may nest, in and out.
const maxDepth = 200

// decoder reads one JSON text (RFC 8259) from the front.
type decoder struct {
	data  []byte
	pos   int
	depth int
	// lenient ignores unknown properties: of what hosts wrap a call in.
	lenient bool
}

func (d *decoder) syntax(what string) error {
	return invalid("invalid JSON at byte " + itoa(d.pos) + ": " + what)
}

// peek returns the next byte after white space, or 0 at the end.
func (d *decoder) peek() byte {
	for d.pos < len(d.data) {
		switch c := d.data[d.pos]; c {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return c
		}
	}
	return 0
}

// accept takes c if it is next.
func (d *decoder) accept(c byte) bool {
	if d.peek() != c {
		return false
	}
	d.pos++
	return true
}

func (d *decoder) end() error {
	if d.peek() != 0 || d.pos < len(d.data) {
		return d.syntax("more after the value")
	}
	return nil
}

// open takes the bracket c, counting how deep that is.
func (d *decoder) open(c byte) error {
	if !d.accept(c) {
		return d.syntax("expected " + string(rune(c)))
	}
	if d.depth++; d.depth > maxDepth {
		return d.syntax("nested deeper than " + itoa(maxDepth))
	}
	return nil
}

// more is the loop condition over the members of an array or object: it takes
// a comma before all but the first, and the closing bracket.
func (d *decoder) more(first bool, closing byte) (bool, error) {
	if d.accept(closing) {
		d.depth--
		return false, nil
	}
	if first || d.accept(',') {
		return true, nil
	}
	return false, d.syntax("expected , or " + string(rune(closing)))
}

// key takes a member's name and the colon.
func (d *decoder) key() (string, error) {
	if d.peek() != '"' {
		return "", d.syntax("expected a property name")
	}
	name, err := d.text()
	if err == nil && !d.accept(':') {
		err = d.syntax("expected :")
	}
	return name, err
}

// kindName says what stands next, in JSON Schema's words.
func (d *decoder) kindName() string {
	switch c := d.peek(); {
	case c == '{':
		return "object"
	case c == '[':
		return "array"
	case c == '"':
		return "string"
	case c == 't' || c == 'f':
		return "boolean"
	case c == 'n':
		return "null"
	case c == '-' || isDigit(c):
		return "number"
	}
	return ""
}

func (d *decoder) word(word string) error {
	if len(d.data)-d.pos < len(word) || string(d.data[d.pos:d.pos+len(word)]) != word {
		return d.syntax("expected " + word)
	}
	d.pos += len(word)
	return nil
}

func (d *decoder) boolean() (bool, error) {
	if d.peek() == 't' {
		return true, d.word("true")
	}
	return false, d.word("false")
}

// text takes a string. What is no UTF-8 or half a surrogate pair becomes U+FFFD,
// as in encoding/json.
func (d *decoder) text() (string, error) {
	if !d.accept('"') {
		return "", d.syntax("expected a string")
	}
	start := d.pos
	for d.pos < len(d.data) {
		switch c := d.data[d.pos]; {
		case c == '"':
			d.pos++
			return string(d.data[start : d.pos-1]), nil
		case c == '\\' || c >= utf8.RuneSelf:
			return d.escapedText(start)
		case c < ' ':
			return "", d.syntax("control character in a string")
		}
		d.pos++
	}
	return "", d.syntax("string without an end")
}

// escapedText is text from the first byte on that does not stand for itself.
func (d *decoder) escapedText(start int) (string, error) {
	b := append(make([]byte, 0, d.pos-start+64), d.data[start:d.pos]...)
	for d.pos < len(d.data) {
		switch c := d.data[d.pos]; {
		case c == '"':
			d.pos++
			return string(b), nil
		case c == '\\':
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, r)
		case c < ' ':
			return "", d.syntax("control character in a string")
		default:
			r, n := utf8.DecodeRune(d.data[d.pos:])
			b = utf8.AppendRune(b, r)
			d.pos += n
		}
	}
	return "", d.syntax("string without an end")
}

const escapes, escaped = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

func (d *decoder) escape() (rune, error) {
	d.pos++ // the backslash
	if d.pos == len(d.data) {
		return 0, d.syntax("string without an end")
	}
	c := d.data[d.pos]
	for i := range len(escapes) {
		if escapes[i] == c {
			d.pos++
			return rune(escaped[i]), nil
		}
	}
	if c != 'u' {
		return 0, d.syntax("unknown escape")
	}
	d.pos++
	high, ok := d.hex4(d.pos)
	if !ok {
		return 0, d.syntax("expected four hex digits")
	}
	d.pos += 4
	if !utf16.IsSurrogate(high) {
		return high, nil
	}
	if d.pos+1 < len(d.data) && d.data[d.pos] == '\\' && d.data[d.pos+1] == 'u' {
		if low, ok := d.hex4(d.pos + 2); ok && utf16.DecodeRune(high, low) != utf8.RuneError {
			d.pos += 6
			return utf16.DecodeRune(high, low), nil
		}
	}
	return utf8.RuneError, nil
}

func (d *decoder) hex4(at int) (rune, bool) {
	if at+4 > len(d.data) {
		return 0, false
	}
	for _, c := range d.data[at : at+4] {
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(string(d.data[at:at+4]), 16, 16)
	return rune(n), err == nil
}
