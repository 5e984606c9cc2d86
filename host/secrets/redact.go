package secrets

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Redactor takes the values of a vault out of texts, as they are at that moment,
// and those that were removed or replaced while the process runs. It finds a value
// of [MinValue] bytes and more as it is, in UTF-16, in hexadecimal and in base64 of
// both alphabets, wherever in the encoded text it lies and however that is broken
// into lines or groups, in HTML, and all of these with the escapes of URLs and of
// JSON strings, also one in the other; not what was compressed, encrypted, cut, or
// encoded twice.
type Redactor struct{ vault *Vault }

// Redactor returns the vault's redactor.
func (v *Vault) Redactor() *Redactor { return &Redactor{v} }

// Text returns text with [redacted:NAME] for each value, and how many there were.
func (r *Redactor) Text(text string) (string, int) {
	if len(text) < MinValue {
		return text, 0
	}
	clean, n := r.Bytes([]byte(text))
	if n == 0 {
		return text, 0
	}
	return string(clean), n
}

// Bytes is [Redactor.Text] for bytes. It returns text itself if there is no value
// in it, and never changes it.
func (r *Redactor) Bytes(text []byte) ([]byte, int) {
	found := r.find(text)
	if len(found) == 0 {
		return text, 0
	}
	return replaced(text, found), len(found)
}

// JSON is [Redactor.Bytes] for a JSON document, which stays one: if a value has
// more of it than text within its strings, all of it is replaced.
func (r *Redactor) JSON(raw []byte) ([]byte, int) {
	found := r.find(raw)
	if len(found) == 0 {
		return raw, 0
	}
	if clean := replaced(raw, found); json.Valid(clean) {
		return clean, len(found)
	}
	return []byte(`"` + marker(found[0].name) + `"`), len(found)
}

// Names reports whether text, in which the case of letters may have been changed,
// holds a value: the name of a host or of a header field.
func (r *Redactor) Names(text string) bool {
	if len(r.find([]byte(text))) > 0 {
		return true
	}
	text = strings.ToLower(text)
	return slices.ContainsFunc(r.vault.live.Load().matcher.lower, func(value string) bool { return strings.Contains(text, value) })
}

// find looks at the files first, unless that was done a moment ago. Whoever gets a
// value looked then, so that no value is in use that is not known here.
func (r *Redactor) find(text []byte) []span {
	if len(text) < MinValue {
		return nil
	}
	if age := time.Now().UnixNano() - r.vault.checked.Load(); age > int64(recheck) && r.vault.mu.TryLock() {
		r.vault.refreshLocked()
		r.vault.mu.Unlock()
	}
	return r.vault.find(text)
}

// find waits until there is room: looking through a text takes as much memory again
// as the text has.
func (v *Vault) find(text []byte) []span {
	if len(text) < MinValue {
		return nil
	}
	defer v.room.enter(len(text))()
	return v.live.Load().matcher.find(text)
}

// maxDepth is how many escapings inside each other are looked through.
const maxDepth = 3

// find returns where values are, in order, apart from each other. None ends inside
// an escape of the text itself, so that JSON stays JSON.
//
// A text is unescaped in each of the ways alone, and up to maxDepth times in all of
// them at once: whatever the order in which escapings were put into each other. Where
// escapes are is not kept, but found out again if there is a value.
func (m *matcher) find(text []byte) []span {
	if m.empty() {
		return nil
	}
	found := m.scan(nil, text)
	if allWays.in(text) {
		room := make([]byte, 0, len(text))
		found = m.findOneWay(found, text, room)
		found = m.findNested(found, text, room)
	}
	if len(found) > maxFound {
		return []span{{0, len(text), found[0].name}}
	}
	for _, w := range []ways{percents, backslashes, entities} { // what was unescaped may have other borders
		found = merged(found)
		if len(found) > 0 {
			w.whole(text, found)
		}
	}
	return merged(found)
}

// findOneWay adds what is found if only one kind of escapes is one. Where there is
// only one kind, it is what findNested finds.
func (m *matcher) findOneWay(found []span, text, room []byte) []span {
	var kinds []ways
	for _, w := range []ways{percents, backslashes, entities} {
		if w.in(text) {
			kinds = append(kinds, w)
		}
	}
	if len(kinds) < 2 {
		return found
	}
	for _, w := range kinds {
		plain, _ := w.decode(room, text)
		if more := merged(m.scan(nil, plain)); len(more) > 0 {
			w.origins(text, more)
			found = append(found, more...)
		}
	}
	return found
}

// findNested adds what is found if all escapes are replaced, again and again.
func (m *matcher) findNested(found []span, text, room []byte) []span {
	plain, count := allWays.decode(room, text)
	for depth := 1; count > 0; depth++ {
		if more := merged(m.scan(nil, plain)); len(more) > 0 {
			for up := depth - 1; up >= 0; up-- {
				allWays.origins(decoded(text, up), more)
			}
			found = append(found, more...)
		}
		if depth == maxDepth {
			break
		}
		plain, count = allWays.decode(plain, plain)
	}
	return found
}

// decoded returns what becomes of text when its escapes are replaced so many times.
func decoded(text []byte, times int) []byte {
	if times == 0 {
		return text
	}
	plain := make([]byte, 0, len(text))
	plain, _ = allWays.decode(plain, text)
	for range times - 1 {
		plain, _ = allWays.decode(plain, plain)
	}
	return plain
}

func merged(found []span) []span {
	slices.SortFunc(found, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	kept := found[:0]
	for _, s := range found {
		if last := len(kept) - 1; last >= 0 && s.from < kept[last].to {
			kept[last].to = max(kept[last].to, s.to)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

func replaced(text []byte, found []span) (out []byte) {
	at := 0
	for _, s := range found {
		out = append(append(out, text[at:s.from]...), marker(s.name)...)
		at = s.to
	}
	return append(out, text[at:]...)
}

// marker is what stands for a value that was taken out.
func marker(name string) string { return "[redacted:" + name + "]" }
