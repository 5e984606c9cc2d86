package dialect

import (
	"encoding/json"
	"fmt"
	"strings"
)

// fields are the members of one JSON object that a guest wrote, read by exact
// name: encoding/json into a struct would also take "NAME" for name. The first
// thing that is wrong is kept in err, and everything after it reads as absent.
type fields struct {
	members map[string]json.RawMessage
	where   string // what the object is, for errors
	lenient bool   // null is as good as absent
	err     *error // shared by the objects of one document
}

// objectFields reads raw, which must be valid JSON.
func objectFields(raw json.RawMessage, where string, lenient bool, err *error) fields {
	f := fields{where: where, lenient: lenient, err: err}
	if kind := kindOfJSON(raw); kind != "object" {
		f.fail("%s is %s, want an object", where, article(kind))
		return f
	}
	if e := json.Unmarshal(raw, &f.members); e != nil {
		f.fail("%s: %v", where, e)
	}
	return f
}

func (f *fields) fail(format string, args ...any) {
	if *f.err == nil {
		*f.err = fmt.Errorf(format, args...)
	}
}

// get returns a member, or nil if it is absent or of another kind than want;
// the latter is an error. An empty want takes any kind.
func (f *fields) get(name, want string) json.RawMessage {
	raw, ok := f.members[name]
	if !ok || *f.err != nil {
		return nil
	}
	kind := kindOfJSON(raw)
	if kind == "null" && f.lenient {
		return nil
	}
	if want != "" && kind != want {
		f.fail("%s: %s is %s, want %s", f.where, name, article(kind), article(want))
		return nil
	}
	return raw
}

// need is get for a member that must be there.
func (f *fields) need(name, want string) json.RawMessage {
	raw := f.get(name, want)
	if raw == nil {
		f.fail("%s: %s is missing", f.where, name)
	}
	return raw
}

// text returns a member that is a string, "" if it is absent.
func (f *fields) text(name string) string { return decoded[string](f, name, f.get(name, "string")) }

// needText is text for a member that must be there and not empty.
func (f *fields) needText(name string) string {
	s := decoded[string](f, name, f.need(name, "string"))
	if s == "" {
		f.fail("%s: %s is empty", f.where, name)
	}
	return s
}

// flag returns a member that is true or false, nil if it is absent.
func (f *fields) flag(name string) *bool {
	raw := f.get(name, "boolean")
	if raw == nil {
		return nil
	}
	v := string(raw) == "true"
	return &v
}

// list returns the elements of a member that is an array.
func (f *fields) list(name string) []json.RawMessage {
	return decoded[[]json.RawMessage](f, name, f.get(name, "array"))
}

func decoded[T any](f *fields, name string, raw json.RawMessage) (v T) {
	if raw == nil {
		return v
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		f.fail("%s: %s: %v", f.where, name, err)
	}
	return v
}

// kindOfJSON returns what valid JSON is.
func kindOfJSON(raw json.RawMessage) string {
	text := strings.TrimLeft(string(raw[:min(len(raw), 64)]), " \t\r\n")
	if text == "" {
		text = strings.TrimLeft(string(raw), " \t\r\n")
	}
	if text == "" {
		return "nothing"
	}
	switch text[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// article puts "a" or "an" before what kindOfJSON returns.
func article(kind string) string {
	switch kind {
	case "object", "array":
		return "an " + kind
	case "null", "nothing":
		return kind
	}
	return "a " + kind
}
