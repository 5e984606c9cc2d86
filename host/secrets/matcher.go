package secrets

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
)

// A pattern is one form of one value. Escapes are not among the forms: the text is unescaped instead, and looked at again.
type pattern struct {
	text string
	name string
	// left and right say that the character before or behind is made of bits of
	// the value too (base64 packs 3 bytes into 4 characters).
	left, right bool
}

// key is how many bytes of a pattern lead to it.
const key = MinValue

// matcher finds patterns. It is never changed after it is made.
//
// A filter over the first bytes of all patterns lets nearly every position of a
// text pass in a few instructions; what it catches is looked up.
type matcher struct {
	filter [1 << 10]uint64
	heads  map[uint64][]pattern // longest first
	count  int
}

func newMatcher(values []Value) *matcher {
	m := &matcher{heads: map[uint64][]pattern{}}
	seen := map[string]bool{}
	for _, v := range values {
		for _, p := range forms(v) {
			if len(p.text) >= key && !seen[p.text] {
				seen[p.text] = true
				m.add(p)
			}
		}
	}
	for _, patterns := range m.heads {
		slices.SortStableFunc(patterns, func(a, b pattern) int { return cmp.Compare(len(b.text), len(a.text)) })
	}
	return m
}

func (m *matcher) add(p pattern) {
	var first [8]byte
	copy(first[:], p.text[:key])
	head := binary.LittleEndian.Uint64(first[:])
	slot := hash(head)
	m.filter[slot>>6] |= 1 << (slot & 63)
	m.heads[head] = append(m.heads[head], p)
	m.count++
}

func hash(head uint64) uint16 { return uint16(head * 0x9e3779b97f4a7c15 >> 48) }

// forms returns what a value can look like.
func forms(v Value) (all []pattern) {
	name, text := v.both()
	for _, s := range []string{
		text,
		strings.ReplaceAll(text, " ", "+"), // a query's, unescaped as far as it goes
		abi.OneLine(text, len(text)*len("\ufffd")), // as a log has it
		hex.EncodeToString([]byte(text)),
		strings.ToUpper(hex.EncodeToString([]byte(text))),
	} {
		all = append(all, pattern{text: s, name: name})
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			all = append(all, aligned(enc, name, text, before))
		}
	}
	return all
}

// aligned returns the base64 of text with some bytes before it, as far as it does
// not depend on what these and those behind are.
func aligned(enc *base64.Encoding, name, text string, before int) pattern {
	whole := enc.EncodeToString([]byte("\x00\x00"[:before] + text))
	from := (before*8 + 5) / 6 // characters with bits of what is before
	to := (before + len(text)) * 8 / 6
	return pattern{text: whole[from:to], name: name, left: before > 0, right: to < len(whole)}
}

// A span is a part of a text that stands for a secret.
type span struct {
	from, to int
	name     string
}

// scan finds patterns in text as it is.
func (m *matcher) scan(text []byte) (found []span) {
	if m.count == 0 {
		return nil
	}
	const mask = 1<<(8*key) - 1
	at := 0
	for ; at+8 <= len(text); at++ {
		head := binary.LittleEndian.Uint64(text[at:]) & mask
		if slot := hash(head); m.filter[slot>>6]>>(slot&63)&1 != 0 {
			found = m.match(found, text, at, head)
		}
	}
	for ; at+key <= len(text); at++ {
		var last [8]byte
		copy(last[:], text[at:at+key])
		found = m.match(found, text, at, binary.LittleEndian.Uint64(last[:]))
	}
	return found
}

func (m *matcher) match(found []span, text []byte, at int, head uint64) []span {
	for _, p := range m.heads[head] {
		end := at + len(p.text)
		if end > len(text) || string(text[at:end]) != p.text {
			continue
		}
		from := at
		if p.left && from > 0 && isBase64(text[from-1]) {
			from--
		}
		if p.right && end < len(text) && isBase64(text[end]) {
			for end++; end < len(text) && text[end] == '='; end++ {
			}
		}
		return append(found, span{from, end, p.name})
	}
	return found
}

func isBase64(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("+/-_", c) >= 0
}
