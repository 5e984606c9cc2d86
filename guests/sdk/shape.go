package sdk

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// kind is what a Go type is in JSON.
type kind uint8

const (
	boolean   kind = iota
	integer        // int, int8 ... int64
	unsigned       // uint, uint8 ... uint64
	number         // float32, float64
	decimal        // json.Number
	text           // string
	reference      // Ref
	textual        // text of a type with MarshalText and UnmarshalText
	binary         // []byte, as base64
	list           // slice
	dict           // map with string keys
	object         // struct
	raw            // json.RawMessage
	anything       // any
)

// typeNames are JSON Schema's; the last two kinds have none, and a reference may be an
// integer too.
var typeNames = [...]string{
	"boolean", "integer", "integer", "number", "number",
	"string", "string", "string", "string", "array", "object", "object", "", "",
}

func (k kind) schemaType() string { return typeNames[k] }

// shape is what encoding/json makes of a Go type, prepared for its schema, for
// checking arguments and for filling in results. It is a finite tree, made once
// and then only read.
type shape struct {
	kind   kind
	typ    reflect.Type
	elem   *shape  // of a list or dict
	fields []field // of an object
	enum   []string
	alias  map[string]string // other spellings of values of enum
	min    *bound
	max    *bound
}

// field is a property of an object.
type field struct {
	name     string
	doc      string
	index    []int // for reflect.Value.FieldByIndex
	shape    *shape
	pointer  bool
	optional bool // need not be there
	omitzero bool // has the json option of that name
	def      any  // what an absent property stands for, as check returns it, or nil
}

// direction says which way a type's values go.
type direction uint8

const (
	input direction = iota
	output
)

// converts reports whether encoding/json leaves the JSON of t, or its text, to
// methods of *t.
func (d direction) converts(t reflect.Type) (toJSON, toText bool) {
	p := reflect.PointerTo(t)
	if d == input {
		return p.Implements(reflect.TypeFor[json.Unmarshaler]()), p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
	return p.Implements(reflect.TypeFor[json.Marshaler]()), p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// shapeOf prepares t, or says why t has no portable JSON form.
func shapeOf(t reflect.Type, dir direction) (*shape, error) {
	return builder{dir: dir}.build(t)
}

// builder walks a type.
type builder struct {
	dir     direction
	parents []reflect.Type // the structs it is inside of
}

func (b builder) build(t reflect.Type) (*shape, error) {
	if s, err := b.special(t); s != nil || err != nil {
		return s, err
	}
	if k, ok := basicKinds[t.Kind()]; ok {
		return &shape{kind: k, typ: t}, nil
	}
	switch t.Kind() {
	case reflect.Slice:
		return b.container(list, t)
	case reflect.Map:
		return b.dict(t)
	case reflect.Struct:
		return b.object(t)
	case reflect.Interface:
		return b.any(t)
	case reflect.Pointer:
		return nil, fmt.Errorf("is a %s; pointers are for optional struct fields only", t)
	}
	return nil, fmt.Errorf("is a %s, which has no JSON form", t)
}

var basicKinds = map[reflect.Kind]kind{
	reflect.Bool: boolean, reflect.String: text,
	reflect.Int: integer, reflect.Int8: integer, reflect.Int16: integer, reflect.Int32: integer, reflect.Int64: integer,
	reflect.Uint: unsigned, reflect.Uint8: unsigned, reflect.Uint16: unsigned, reflect.Uint32: unsigned, reflect.Uint64: unsigned,
	reflect.Float32: number, reflect.Float64: number,
}

// special returns the shape of a type that is more than its kind says, or nil.
func (b builder) special(t reflect.Type) (*shape, error) {
	toJSON, toText := b.dir.converts(t)
	switch {
	case isType(t, "time", "Duration"):
		return nil, errors.New("is a time.Duration, which has no portable JSON form; use a number of seconds, or ISO 8601 text")
	case isType(t, "time", "Time"):
		return &shape{kind: textual, typ: t}, nil
	case t == reflect.TypeFor[json.Number]():
		return &shape{kind: decimal, typ: t}, nil
	case t == reflect.TypeFor[json.RawMessage]():
		return b.untyped(raw, t)
	case t == reflect.TypeFor[Ref]() && b.dir == input:
		return &shape{kind: reference, typ: t}, nil
	case t.Kind() == reflect.Interface:
		return nil, nil
	case toJSON:
		return nil, fmt.Errorf("is a %s, which converts itself to or from JSON, so it has no derived schema; use text or a json.Number", t)
	case toText && b.dir == output && !t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return nil, fmt.Errorf("is a %s, whose method MarshalText needs a pointer; use a string", t)
	case toText:
		return &shape{kind: textual, typ: t}, nil
	case t.Kind() == reflect.Slice && t.Elem() == reflect.TypeFor[byte]():
		return &shape{kind: binary, typ: t}, nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return nil, fmt.Errorf("is a %s; use a []byte, which is base64, or a []int", t)
	}
	return nil, nil
}

// isType compares by name: naming a type of package time here would link most of
// that package into every tool (0.17 MB).
func isType(t reflect.Type, pkg, name string) bool { return t.Name() == name && t.PkgPath() == pkg }

func (b builder) any(t reflect.Type) (*shape, error) {
	if t.NumMethod() > 0 {
		return nil, fmt.Errorf("is the interface %s, which has no JSON form", t)
	}
	return b.untyped(anything, t)
}

// untyped lets values without one JSON type into outputs only: the schemas of
// inputs go to model APIs, and some refuse a property without a type.
func (b builder) untyped(k kind, t reflect.Type) (*shape, error) {
	if b.dir == input {
		return nil, fmt.Errorf("is a %s, which has no single JSON type; use map[string]any, or a string with JSON in it", t)
	}
	return &shape{kind: k, typ: t}, nil
}

func (b builder) dict(t reflect.Type) (*shape, error) {
	if _, toText := b.dir.converts(t.Key()); toText || t.Key().Kind() != reflect.String {
		return nil, fmt.Errorf("is a %s; keys must be strings", t)
	}
	if t.Elem() == reflect.TypeFor[any]() {
		return &shape{kind: dict, typ: t, elem: &shape{kind: anything, typ: t.Elem()}}, nil
	}
	return b.container(dict, t)
}

// container returns the shape of a slice or map.
func (b builder) container(k kind, t reflect.Type) (*shape, error) {
	elem, err := b.build(t.Elem())
	if err != nil {
		return nil, within("[]", err)
	}
	return &shape{kind: k, typ: t, elem: elem}, nil
}

func (b builder) object(t reflect.Type) (*shape, error) {
	if slices.Contains(b.parents, t) {
		return nil, fmt.Errorf("is a %s, which contains itself", t)
	}
	b.parents = append(b.parents[:len(b.parents):len(b.parents)], t)
	s := &shape{kind: object, typ: t}
	if err := b.addFields(s, t, nil); err != nil {
		return nil, err
	}
	return s, nil
}

// addFields adds t's fields to s; those of embedded structs count as its own.
func (b builder) addFields(s *shape, t reflect.Type, index []int) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		switch {
		case sf.Tag.Get("json") == "-" || !sf.IsExported() && !sf.Anonymous:
			continue
		case sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct:
			if err := b.addFields(s, sf.Type, at); err != nil {
				return err
			}
			continue
		}
		f, err := b.field(sf, at)
		if err != nil {
			return within(f.name, err)
		}
		if s.has(f.name) {
			return within(f.name, errors.New("is the name of two fields"))
		}
		s.fields = append(s.fields, f)
	}
	return nil
}

// field returns a field with at least its name, also on an error.
func (b builder) field(sf reflect.StructField, index []int) (field, error) {
	name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
	if name == "" {
		name = sf.Name
	}
	f := field{name: name, doc: sf.Tag.Get("doc"), index: index}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitempty":
			f.optional = true
		case "omitzero":
			f.optional, f.omitzero = true, true
		default:
			return f, fmt.Errorf("has the json option %s; known are omitempty and omitzero", quote(option))
		}
	}
	if !validKey(name) {
		return f, errors.New("is no name that every host takes; use 1 to 64 of letters, digits, _, . and -")
	}
	if sf.Anonymous && (!sf.IsExported() || sf.Type.Kind() == reflect.Pointer) {
		return f, errors.New("embeds what is no struct; give the field a name")
	}
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		if b.dir == output && !f.optional {
			return f, errors.New("is a pointer, and nil would be null, which no schema here allows; add omitempty")
		}
		t, f.pointer, f.optional = t.Elem(), true, true
	}
	var err error
	if f.shape, err = b.build(t); err != nil {
		return f, err
	}
	return f, b.tags(&f, sf.Tag)
}

// has reports whether s has a field called name.
func (s *shape) has(name string) bool {
	return slices.ContainsFunc(s.fields, func(f field) bool { return f.name == name })
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// validKey reports whether every host takes s as a property's name.
func validKey(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= 64
}
