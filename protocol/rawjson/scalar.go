package rawjson

import (
	"strconv"
	"strings"
)

func (s *scanner) str() *syntaxError {
	for s.off++; s.off < len(s.text); {
		switch c := s.text[s.off]; {
		case c == '"':
			s.off++
			return nil
		case c < 0x20:
			return s.fail("control character %U in a string", c)
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		default:
			s.off++
		}
	}
	return s.fail("a string without its end")
}

func (s *scanner) escape() *syntaxError {
	rest := s.text[s.off+1:]
	if rest != "" && strings.IndexByte(`"\/bfnrt`, rest[0]) >= 0 {
		s.off += 2
		return nil
	}
	unit, ok := hex4(rest)
	switch {
	case !ok:
		return s.fail("a wrong escape in a string")
	case unit < 0xD800 || unit > 0xDFFF:
		s.off += 6
		return nil
	}
	if low, ok := lowSurrogate(rest[5:]); unit > 0xDBFF || !ok || low == 0 {
		return s.fail("surrogate %#x without its partner", unit)
	}
	s.off += 12
	return nil
}

// hex4 reads u and four hexadecimal digits.
func hex4(text string) (uint16, bool) {
	if len(text) < 5 || text[0] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(text[1:5], 16, 16)
	return uint16(v), err == nil
}

// lowSurrogate reads the second half of a pair of escapes.
func lowSurrogate(text string) (uint16, bool) {
	if text == "" || text[0] != '\\' {
		return 0, false
	}
	unit, ok := hex4(text[1:])
	return unit, ok && unit >= 0xDC00 && unit <= 0xDFFF
}

func (s *scanner) number() *syntaxError {
	start := s.off
	if s.peek() == '-' {
		s.off++
	}
	if s.peek() == '0' {
		s.off++
	} else if s.digits() == 0 {
		return s.fail("found %s, expected a digit", s.found())
	}
	if s.peek() == '.' {
		s.off++
		if s.digits() == 0 {
			return s.fail("found %s, expected a digit", s.found())
		}
	}
	if err := s.exponent(); err != nil {
		return err
	}
	if size := s.off - start; size > maxNumber {
		s.off = start
		return s.fail("a number of %d characters, at most %d", size, maxNumber)
	}
	return nil
}

func (s *scanner) exponent() *syntaxError {
	if s.peek()|0x20 != 'e' {
		return nil
	}
	s.off++
	if c := s.peek(); c == '+' || c == '-' {
		s.off++
	}
	start := s.off
	if s.digits() == 0 {
		return s.fail("found %s, expected a digit", s.found())
	}
	if v, err := strconv.Atoi(s.text[start:s.off]); err != nil || v > maxExponent {
		return s.fail("an exponent over %d", maxExponent)
	}
	return nil
}

func (s *scanner) digits() int {
	start := s.off
	for isDigit(s.peek()) {
		s.off++
	}
	return s.off - start
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
