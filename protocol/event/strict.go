package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/chat"
)

// A FieldError says what is wrong with one member of a JSON text.
type FieldError struct {
	// Field is the path of the member, as in messages[2].role; empty is the whole.
	Field   string
	Found   string
	Allowed string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("found %s, allowed is %s", e.Found, e.Allowed)
	}
	return fmt.Sprintf("%s: found %s, allowed is %s", e.Field, e.Found, e.Allowed)
}

// within returns the error as one of a larger text.
func (e *FieldError) within(path string) *FieldError {
	return &FieldError{Field: join(path, e.Field), Found: e.Found, Allowed: e.Allowed}
}

func join(path, name string) string {
	if path == "" || name == "" || name[0] == '[' {
		return path + name
	}
	return path + "." + name
}

func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

const nothing = "nothing"

// shown quotes what a stranger wrote, cut to a length.
func shown(s string) string {
	const most = 60
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "..."
	}
	return strconv.Quote(s)
}

// what names a JSON value for an error.
func what(raw []byte) string {
	if len(raw) == 0 {
		return nothing
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "the number " + strings.Trim(shown(string(raw)), `"`)
}

// rule is what the tag "is" of a field says.
type rule struct {
	required bool
	filled   bool // not empty
	object   bool
	null     bool     // null is a value
	signed   bool     // may be below 0
	one      []string // nil is any
}

func ruleOf(f reflect.StructField) (r rule) {
	for word := range strings.SplitSeq(f.Tag.Get("is"), ",") {
		switch word {
		case "required":
			r.required = true
		case "id":
			r.required, r.filled = true, true
		case "object":
			r.object = true
		case "null":
			r.null = true
		case "signed":
			r.signed = true
		default:
			if list, ok := strings.CutPrefix(word, "one="); ok {
				r.one = strings.Split(list, "|")
			}
		}
	}
	return r
}

// text returns what is wrong with a string.
func (r rule) text(path, s string) *FieldError {
	switch {
	case r.filled && s == "":
		return &FieldError{Field: path, Found: "an empty string", Allowed: "one that is not empty"}
	case r.filled && !utf8.ValidString(s):
		return &FieldError{Field: path, Found: shown(s), Allowed: "valid UTF-8"}
	case r.one == nil || s == "" && !r.required:
		return nil
	}
	for _, word := range r.one {
		if s == word {
			return nil
		}
	}
	return &FieldError{Field: path, Found: shown(s), Allowed: strings.Join(r.one, ", ")}
}

// faulty is a struct that has rules besides those of its fields.
type faulty interface{ fault() *FieldError }

// wanting is a struct that needs a member only sometimes.
type wanting interface{ wants() string }

// A reader decodes JSON into the structs of this package.
type reader struct {
	// lenient takes a null for a member that was left out, if it may be.
	lenient bool
	// most is how many elements any array may have; 0 is any number.
	most int
}

// members returns the members of an object, the last of each name.
func (r reader) members(path string, raw []byte) (map[string]json.RawMessage, *FieldError) {
	raw = bytes.TrimSpace(raw)
	var members map[string]json.RawMessage
	switch {
	case len(raw) > 0 && raw[0] != '{':
		return nil, &FieldError{Field: path, Found: what(raw), Allowed: "an object"}
	case json.Unmarshal(raw, &members) != nil:
		return nil, &FieldError{Field: path, Found: "text that is not JSON", Allowed: "an object"}
	}
	return members, nil
}

// fields sets the fields of a struct.
func (r reader) fields(path string, members map[string]json.RawMessage, into reflect.Value) *FieldError {
	for i := range into.NumField() {
		field := into.Type().Field(i)
		if field.Anonymous {
			if fault := r.fields(path, members, into.Field(i)); fault != nil {
				return fault
			}
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if fault := r.value(join(path, name), members[name], into.Field(i), ruleOf(field)); fault != nil {
			return fault
		}
	}
	if w, ok := into.Interface().(wanting); ok {
		if name := w.wants(); name != "" && members[name] == nil {
			return &FieldError{Field: join(path, name), Found: nothing, Allowed: "a string"}
		}
	}
	if f, ok := into.Interface().(faulty); ok {
		if fault := f.fault(); fault != nil {
			return fault.within(path)
		}
	}
	return nil
}

// value sets one field. A raw of nil is a member that is not there.
func (r reader) value(path string, raw json.RawMessage, into reflect.Value, is rule) *FieldError {
	null := bytes.Equal(raw, []byte("null"))
	switch {
	case raw == nil && !is.required, null && r.lenient && !is.required && !is.null:
		return nil
	case raw == nil, null && !is.null:
		return &FieldError{Field: path, Found: what(raw), Allowed: kindOf(into.Type(), is)}
	}
	switch into := into.Addr().Interface().(type) {
	case *json.RawMessage:
		if is.object && raw[0] != '{' {
			return &FieldError{Field: path, Found: what(raw), Allowed: "an object"}
		}
		*into = raw
		return nil
	case *chat.Content:
		c, fault := r.content(path, raw, true)
		*into = c
		return fault
	case *[]chat.Message:
		m, fault := r.messages(path, raw)
		*into = m
		return fault
	}
	switch into.Kind() {
	case reflect.Struct:
		members, fault := r.members(path, raw)
		if fault != nil {
			return fault
		}
		return r.fields(path, members, into)
	case reflect.Slice:
		return r.slice(path, raw, into, rule{required: true})
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return r.value(path, raw, into.Elem(), is)
	}
	if json.Unmarshal(raw, into.Addr().Interface()) != nil {
		return &FieldError{Field: path, Found: what(raw), Allowed: kindOf(into.Type(), is)}
	}
	if into.Kind() == reflect.String {
		return is.text(path, into.String())
	}
	return inRange(path, into, is)
}

func (r reader) slice(path string, raw json.RawMessage, into reflect.Value, is rule) *FieldError {
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	return r.each(path, raw, func(path string, raw json.RawMessage) *FieldError {
		element := reflect.New(into.Type().Elem()).Elem()
		if fault := r.value(path, raw, element, is); fault != nil {
			return fault
		}
		into.Set(reflect.Append(into, element))
		return nil
	})
}

// each goes through an array, and stops at the first fault: what comes behind it costs
// nothing.
func (r reader) each(path string, raw json.RawMessage, do func(string, json.RawMessage) *FieldError) *FieldError {
	if raw[0] != '[' {
		return &FieldError{Field: path, Found: what(raw), Allowed: "an array"}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return &FieldError{Field: path, Found: "text that is not JSON", Allowed: "an array"}
	}
	for i := 0; dec.More(); i++ {
		if r.most > 0 && i == r.most {
			return &FieldError{Field: path, Found: "more", Allowed: fmt.Sprintf("at most %d elements", r.most)}
		}
		var element json.RawMessage
		if err := dec.Decode(&element); err != nil {
			return &FieldError{Field: at(path, i), Found: "text that is not JSON", Allowed: "JSON"}
		}
		if fault := do(at(path, i), element); fault != nil {
			return fault
		}
	}
	return nil
}

// maxInteger is what a number in JavaScript holds exactly, which is AG-UI's bound.
const maxInteger = 1<<53 - 1

func inRange(path string, v reflect.Value, is rule) *FieldError {
	if v.Kind() != reflect.Int64 {
		return nil
	}
	least := int64(0)
	if is.signed {
		least = -maxInteger
	}
	if n := v.Int(); n < least || n > maxInteger {
		return &FieldError{Field: path, Found: strconv.FormatInt(n, 10), Allowed: fmt.Sprintf("an integer from %d to %d", least, int64(maxInteger))}
	}
	return nil
}

func kindOf(t reflect.Type, is rule) string {
	switch {
	case is.one != nil:
		return strings.Join(is.one, ", ")
	case is.object:
		return "an object"
	case t == reflect.TypeFor[json.RawMessage]():
		if is.null {
			return "any JSON"
		}
		return "any JSON but null"
	case t == reflect.TypeFor[chat.Content]():
		return "a string, or an array of parts"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int64:
		return "an integer"
	case reflect.Slice:
		return "an array"
	case reflect.Pointer:
		return kindOf(t.Elem(), is)
	}
	return "an object"
}
