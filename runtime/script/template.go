package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/protocol/rawjson"
)

// A template is a text with references in it: ${name}, ${name.path}, ${name|json}. Nil
// is no text.
type template []fragment

// A fragment is a text as it stands, or a reference.
type fragment struct {
	literal string
	ref     *reference
}

// A reference is a value of the conversation, or something within its JSON.
type reference struct {
	name   string
	path   []string
	asJSON bool
	source string
}

// The names of what is always there; others are groups of the step's expressions.
const (
	refText    = "text"
	refResult  = "result"
	refResults = "results"
)

// parseTemplate reads text; names are the groups that it may speak of.
func parseTemplate(text string, names []string) (template, error) {
	t := template{}
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			return append(t, fragment{literal: text}), nil
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			t, text = append(t, fragment{literal: plain + "${"}), rest
			continue
		}
		source, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, fmt.Errorf("%.40q has no closing brace: write $${ for the two signs themselves", "${"+rest)
		}
		ref, err := parseReference(source, names)
		if err != nil {
			return nil, err
		}
		t, text = append(t, fragment{literal: before}, fragment{ref: ref}), after
	}
}

func parseReference(source string, names []string) (*reference, error) {
	ref := &reference{source: "${" + source + "}"}
	expression, form, hasForm := strings.Cut(source, "|")
	if hasForm && form != "json" {
		return nil, fmt.Errorf("%.60q: after | stands json or nothing", ref.source)
	}
	ref.asJSON = hasForm
	steps := strings.Split(expression, ".")
	ref.name, ref.path = steps[0], steps[1:]
	if slices.Contains(ref.path, "") {
		return nil, fmt.Errorf("%.60q: a part of the path is empty", ref.source)
	}
	switch {
	case ref.name == refResult:
	case ref.name == refResults:
		if len(ref.path) == 0 {
			return nil, fmt.Errorf("%.60q: which tool's? write ${results.TOOL}", ref.source)
		}
	case ref.name == refText, slices.Contains(names, ref.name):
		if len(ref.path) > 0 {
			return nil, fmt.Errorf("%.60q: it is a text and has no parts", ref.source)
		}
	default:
		return nil, fmt.Errorf("%.60q: no such name; there are %s", ref.source, strings.Join(slices.Concat([]string{refText, refResult, refResults}, names), ", "))
	}
	return ref, nil
}

// text fills in the references.
func (t template) text(seen sight) (string, error) {
	var b strings.Builder
	for _, f := range t {
		b.WriteString(f.literal)
		if f.ref == nil {
			continue
		}
		raw, err := f.ref.value(seen)
		if err != nil {
			return "", err
		}
		var text string
		if json.Unmarshal(raw, &text) != nil { // a number or an object stands as it is
			text = string(raw)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// appendTo writes the template as JSON: a lone reference keeps its type, anything else
// is a text.
func (t template) appendTo(b []byte, seen sight) ([]byte, error) {
	if ref := t.lone(); ref != nil {
		raw, err := ref.value(seen)
		return append(b, raw...), err
	}
	text, err := t.text(seen)
	if err != nil {
		return nil, err
	}
	raw, err := rawjson.Marshal(text)
	return append(b, raw...), err
}

func (t template) lone() (ref *reference) {
	for _, f := range t {
		if f.literal != "" || f.ref != nil && ref != nil {
			return nil
		}
		if f.ref != nil {
			ref = f.ref
		}
	}
	return ref
}

// value is what a reference stands for, as JSON.
func (r *reference) value(seen sight) (json.RawMessage, error) {
	switch r.name {
	case refText:
		return r.form(seen.said)
	case refResult:
		if seen.answer == nil {
			return nil, fmt.Errorf("%s: no tool answered last", r.source)
		}
		return r.within(seen.answer.text, r.path)
	case refResults:
		text, ok := seen.lastAnswer(r.path[0])
		if !ok {
			return nil, fmt.Errorf("%s: that tool has not answered yet", r.source)
		}
		return r.within(text, r.path[1:])
	}
	return r.form(seen.captured[r.name])
}

// form is a text as a string, or as the JSON that it is.
func (r *reference) form(text string) (json.RawMessage, error) {
	if !r.asJSON {
		return rawjson.Marshal(text)
	}
	v, err := decodeValue(text)
	if err != nil {
		return nil, fmt.Errorf("%s: not JSON", r.source)
	}
	return rawjson.Marshal(v)
}

// within is what stands at path in text.
func (r *reference) within(text string, path []string) (json.RawMessage, error) {
	if len(path) == 0 {
		return r.form(text)
	}
	v, err := decodeValue(text)
	if err != nil {
		return nil, fmt.Errorf("%s: the result is not JSON", r.source)
	}
	for _, key := range path {
		var ok bool
		if v, ok = child(v, key); !ok {
			return nil, fmt.Errorf("%s: the result has no %.40q there", r.source, key)
		}
	}
	if inner, is := v.(string); is && r.asJSON {
		return r.form(inner)
	}
	return rawjson.Marshal(v)
}

func child(v any, key string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		inner, ok := v[key]
		return inner, ok
	case []any:
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

// decodeValue reads one JSON value and keeps its numbers as they are written.
func decodeValue(text string) (v any, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// A value is JSON with templates in it.
type value struct {
	literal json.RawMessage // a number, a truth value or null
	text    template
	items   []value
	fields  []valueField
	kind    byte // one of 'l', 't', '[' and '{'
}

type valueField struct {
	name  string
	value value
}

// appendTo writes v with its references filled in, in the order of the script.
func (v value) appendTo(b []byte, seen sight) (_ []byte, err error) {
	switch v.kind {
	case 'l':
		return append(b, v.literal...), nil
	case 't':
		return v.text.appendTo(b, seen)
	case '[':
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = item.appendTo(b, seen); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	b = append(b, '{')
	for i, f := range v.fields {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := rawjson.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		if b, err = f.value.appendTo(append(append(b, name...), ':'), seen); err != nil {
			return nil, fmt.Errorf("%.40q: %w", f.name, err)
		}
	}
	return append(b, '}'), nil
}

// isScalar reports whether text is a JSON value that is neither a list nor an object.
func isScalar(text string) bool {
	return json.Valid([]byte(text)) && !bytes.ContainsAny([]byte(text[:1]), "[{")
}
