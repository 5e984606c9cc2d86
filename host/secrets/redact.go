package secrets

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Redactor takes the values of a vault out of texts, as they are at that moment,
// and those that were removed or replaced while the process runs. It finds a value
// of [MinValue] bytes and more as it is, in hexadecimal, in base64 of both
// alphabets wherever in the encoded text it lies, in HTML, and all of these with
// the escapes of URLs and of JSON strings, also one in the other; not what was
// compressed, encrypted or cut.
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
	return r.vault.live.Load().matcher.find(text, maxDepth)
}

// maxDepth is how many escapings inside each other are looked through.
const maxDepth = 3

// find returns where values are, in order, apart from each other. None ends inside
// an escape of the text itself, so that JSON stays JSON.
func (m *matcher) find(text []byte, depth int) []span {
	if m.count == 0 {
		return nil
	}
	found := m.scan(text)
	if depth == 0 {
		return merged(found)
	}
	ways := layers(text)
	for _, u := range ways {
		for _, s := range m.find(u.text, depth-1) {
			found = append(found, span{u.origin(s.from), u.origin(s.to), s.name})
		}
	}
	for i := range found {
		for _, u := range ways {
			if depth == maxDepth { // what was unescaped may have other borders
				found[i] = u.whole(found[i])
			}
		}
	}
	return merged(found)
}

// layers returns what text says in the ways in which it can be unescaped.
func layers(text []byte) (all []unescaped) {
	for _, way := range []struct {
		lead byte
		read func([]byte) (string, int)
	}{{'%', percent}, {'\\', backslash}, {'&', entity}} {
		if u := unescape(text, way.lead, way.read); len(u.marks) > 0 {
			all = append(all, u)
		}
	}
	return all
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
