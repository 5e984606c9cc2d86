package secrets

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

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
type matcher struct {
	exact table // forms as they are
	loose table // encodings that may be broken into lines or groups, without what breaks them
	lower []string
}

// table leads from the first bytes of patterns to the patterns. A filter over them
// lets nearly every position of a text pass in a few instructions; what it catches
// is looked up.
type table struct {
	filter [1 << 10]uint64
	heads  map[uint64][]pattern // longest first
	seen   map[string]bool
}

func newMatcher(values []Value) *matcher {
	m := &matcher{exact: newTable(), loose: newTable()}
	for _, v := range values {
		name, text := v.both()
		for _, s := range readings(text) {
			for _, p := range texts(name, s) {
				m.exact.add(p)
			}
			for _, p := range encodings(name, s) {
				m.exact.add(p)
				p.text = squeezed(p.text)
				m.loose.add(p)
			}
		}
	}
	for text := range m.exact.seen {
		m.lower = append(m.lower, strings.ToLower(text))
	}
	for _, t := range []*table{&m.exact, &m.loose} {
		for _, patterns := range t.heads {
			slices.SortStableFunc(patterns, func(a, b pattern) int { return cmp.Compare(len(b.text), len(a.text)) })
		}
	}
	return m
}

func newTable() table { return table{heads: map[uint64][]pattern{}, seen: map[string]bool{}} }

func (m *matcher) empty() bool { return len(m.exact.heads) == 0 }

func (t *table) add(p pattern) {
	if len(p.text) < key || t.seen[p.text] {
		return
	}
	t.seen[p.text] = true
	var first [8]byte
	copy(first[:], p.text[:key])
	head := binary.LittleEndian.Uint64(first[:])
	slot := hash(head)
	t.filter[slot>>6] |= 1 << (slot & 63)
	t.heads[head] = append(t.heads[head], p)
}

func (t *table) catches(head uint64) bool {
	slot := hash(head)
	return t.filter[slot>>6]>>(slot&63)&1 != 0
}

func hash(head uint64) uint16 { return uint16(head * 0x9e3779b97f4a7c15 >> 48) }

// readings returns a value, and what is left of it where a text that holds it is
// unescaped further than it was escaped.
func readings(text string) []string {
	all := []string{text}
	for plain := []byte(text); len(all) < maxDepth; all = append(all, string(plain)) {
		n := 0
		if plain, n = allWays.decode(plain, plain); n == 0 || len(plain) < MinValue {
			break
		}
	}
	return all
}

// texts returns what a value looks like that is not encoded.
func texts(name, text string) (all []pattern) {
	for _, s := range []string{
		text,
		strings.ReplaceAll(text, " ", "+"), // a query's, unescaped as far as it goes
		abi.OneLine(text, len(text)*len("\ufffd")), // as a log has it
		wide(text, binary.LittleEndian),
		wide(text, binary.BigEndian),
	} {
		all = append(all, pattern{text: s, name: name})
	}
	return all
}

// wide returns a text in UTF-16.
func wide(text string, order binary.AppendByteOrder) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// encodings returns what a value looks like in letters and digits alone.
func encodings(name, text string) (all []pattern) {
	digits := hex.EncodeToString([]byte(text))
	all = append(all, pattern{text: digits, name: name}, pattern{text: strings.ToUpper(digits), name: name})
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

// maxFound is how many values are taken out of a text one by one. In one with more,
// a value is put in its place as a whole.
const maxFound = 10_000

// scan finds patterns in text as it is; it stops behind maxFound.
func (m *matcher) scan(found []span, text []byte) []span {
	return m.loose.scanLoose(m.exact.scan(found, text), text)
}

func (t *table) scan(found []span, text []byte) []span {
	const mask = 1<<(8*key) - 1
	at := 0
	for ; at+8 <= len(text) && len(found) <= maxFound; at++ {
		if head := binary.LittleEndian.Uint64(text[at:]) & mask; t.catches(head) {
			found = t.match(found, text, at, head)
		}
	}
	for ; at+key <= len(text) && len(found) <= maxFound; at++ {
		var last [8]byte
		copy(last[:], text[at:at+key])
		found = t.match(found, text, at, binary.LittleEndian.Uint64(last[:]))
	}
	return found
}

func (t *table) match(found []span, text []byte, at int, head uint64) []span {
	for _, p := range t.heads[head] {
		if end := at + len(p.text); end <= len(text) && string(text[at:end]) == p.text {
			return append(found, p.span(text, at, end))
		}
	}
	return found
}

// span returns what a pattern that was found takes along.
func (p pattern) span(text []byte, from, end int) span {
	if p.left && from > 0 && isBase64(text[from-1]) {
		from--
	}
	if p.right && end < len(text) && isBase64(text[end]) {
		for end++; end < len(text) && text[end] == '='; end++ {
		}
	}
	return span{from, end, p.name}
}

// maxGap is how many characters that break an encoding may follow each other: a line
// break and how far the next line is indented.
const maxGap = 64

// breaks reports whether c stands between the lines or the groups of an encoding.
func breaks(c byte) bool {
	switch c {
	case '\r', '\n', '\t', ' ', ':', '-', ',':
		return true
	}
	return false
}

func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && breaks(byte(r)) {
			return -1
		}
		return r
	}, text)
}

// scanLoose finds patterns in what is left of text without what breaks encodings.
func (t *table) scanLoose(found []span, text []byte) []span {
	var head uint64 // the last characters
	have, gap := 0, 0
	for at, c := range text {
		if breaks(c) {
			if gap++; gap > maxGap {
				have = 0
			}
			continue
		}
		head, gap, have = head>>8|uint64(c)<<(8*(key-1)), 0, have+1
		if have < key || !t.catches(head) {
			continue
		}
		if found = t.matchLoose(found, text, at, head); len(found) > maxFound {
			break
		}
	}
	return found
}

// matchLoose looks at patterns whose first characters end at last.
func (t *table) matchLoose(found []span, text []byte, last int, head uint64) []span {
	patterns := t.heads[head]
	if len(patterns) == 0 {
		return found
	}
	from := last
	for n := 1; n < key; n++ {
		for from--; breaks(text[from]); from-- {
		}
	}
	for _, p := range patterns {
		if end := follow(text[last+1:], p.text[key:]); end >= 0 {
			return append(found, p.span(text, from, last+1+end))
		}
	}
	return found
}

// follow returns where in text a pattern ends that text begins with, -1 if it does not.
func follow(text []byte, pattern string) (end int) {
	for i := range len(pattern) {
		for gap := 0; end < len(text) && breaks(text[end]); end++ {
			if gap++; gap > maxGap {
				return -1
			}
		}
		if end == len(text) || text[end] != pattern[i] {
			return -1
		}
		end++
	}
	return end
}

func isBase64(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("+/-_", c) >= 0
}
