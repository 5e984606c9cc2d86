package wasmbin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxCustomBytes is the largest payload of a custom section that is kept.
const MaxCustomBytes = 256 << 10

// maxCustoms is how many custom sections of ours a module can have.
const maxCustoms = 8

// ours begins the names of custom sections that are kept.
const ours = "hutch."

// customSection: name byte*, section 5.5.3. What is not ours is measured only.
func (w *walker) customSection() {
	name := w.name()
	payload := w.b[w.pos:]
	w.pos = len(w.b)
	if w.err == nil && bytes.HasPrefix(name, []byte(ours)) {
		w.keepCustom(string(name), payload)
	}
}

func (w *walker) keepCustom(name string, payload []byte) {
	if _, twice := w.Custom[name]; twice {
		w.fail("a second one named %.64q", name)
	}
	if len(payload) > MaxCustomBytes {
		w.fail("%.64q has %d bytes, at most %d", name, len(payload), MaxCustomBytes)
	}
	w.atMost(uint64(len(w.Custom)+1), maxCustoms, `sections named "hutch.*"`)
	if w.err != nil {
		return
	}
	if w.Custom == nil {
		w.Custom = make(map[string][]byte)
	}
	w.Custom[name] = bytes.Clone(payload)
}

// AppendCustom returns a copy of wasm with a custom section at its end, and
// without any others of that name. Of wasm it looks at the frames of sections
// only. A module that [Check] accepts is accepted afterwards, unless the file
// became too large. A name has at most 255 bytes, a payload MaxCustomBytes.
func AppendCustom(wasm []byte, name string, payload []byte) ([]byte, error) {
	if len(name) > 255 || !utf8.ValidString(name) {
		return nil, fmt.Errorf("custom section: name %.64q of %d bytes, at most 255 of UTF-8", name, len(name))
	}
	if len(payload) > MaxCustomBytes {
		return nil, fmt.Errorf("custom section: %.64q has %d bytes, at most %d", name, len(payload), MaxCustomBytes)
	}
	out, err := withoutCustom(wasm, name)
	if err != nil {
		return nil, err
	}
	prefix := binary.AppendUvarint(nil, uint64(len(name)))
	out = append(out, 0)
	out = binary.AppendUvarint(out, uint64(len(prefix)+len(name)+len(payload)))
	out = append(out, prefix...)
	out = append(out, name...)
	return append(out, payload...), nil
}

// WithoutCustom returns wasm without custom sections of that name: itself if it has
// none. It looks at the frames of sections only.
func WithoutCustom(wasm []byte, name string) ([]byte, error) {
	r := reader{b: wasm}
	r.header()
	for r.more() {
		f := r.frame()
		if other := r.pass(f); f.id == 0 && string(other) == name {
			return withoutCustom(wasm, name)
		}
	}
	return wasm, r.err
}

// withoutCustom copies wasm, leaving out custom sections with that name, and
// checks that one of that name may be added.
func withoutCustom(wasm []byte, name string) ([]byte, error) {
	r := reader{b: wasm}
	r.header()
	out := append(make([]byte, 0, len(wasm)), wasm[:r.pos]...)
	others := 0
	for r.more() {
		f := r.frame()
		other := r.pass(f)
		if f.id == 0 && string(other) == name {
			continue
		}
		if f.id == 0 && bytes.HasPrefix(other, []byte(ours)) {
			others++
		}
		out = append(out, wasm[f.start:f.body.end]...)
	}
	if r.err == nil && strings.HasPrefix(name, ours) && others >= maxCustoms {
		return nil, fmt.Errorf("custom section: %d named %q already, at most %d", others, ours+"*", maxCustoms)
	}
	return out, r.err
}

// pass moves behind a section. It returns the name of a custom one.
func (r *reader) pass(f frame) (name []byte) {
	file := r.b
	r.b = file[:f.body.end]
	if f.id == 0 {
		name = r.name()
	}
	r.b, r.pos = file, f.body.end
	return name
}
