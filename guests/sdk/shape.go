package sdk

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// kind is what a Go type is in JSON.
type kind uint8

const (
	boolean  kind = iota
	integer       // int, int8 ... int64
	unsigned      // uint, uint8 ... uint64
	number        // float32, float64
	decimal       // json.Number
	text          // string
	textual       // text of a type with MarshalText and UnmarshalText
	base64ed      // []byte
	list          // slice
	dict          // map with string keys
	object        // struct
	raw           // json.RawMessage
	anything      // any
)

// typeNames are JSON Schema's; the last two kinds have none.
var typeNames = [...]string{
	"boolean", "integer", "integer", "number", "number",
	"string", "string", "string", "array", "object", "object", "", "",
}

func (k kind) schemaType() string { return typeNames[k] }

// shape is a Go type prepared for its schema, for decoding and for encoding.
// It is a finite tree, made once and then only read.
type shape struct {
	kind   kind
	typ    reflect.Type
	elem   *shape  // of a list or dict
	fields []field // of an object
	enum   []string
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
	optional bool   // need not be there
	def      []byte // JSON that an absent property stands for, or nil
}

// direction says which way a type's values go.
type direction uint8

const (
	input direction = iota
	output
)

// text is the interface of types that are text in JSON.
func (d direction) text() reflect.Type {
	if d == input {
		return reflect.TypeFor[encoding.TextUnmarshaler]()
	}
	return reflect.TypeFor[encoding.TextMarshaler]()
}

// json is the interface of types whose JSON only they know.
func (d direction) json() reflect.Type {
	if d == input {
		return reflect.TypeFor[json.Unmarshaler]()
	}
	return reflect.TypeFor[json.Marshaler]()
}

// shapeOf prepares t, or says why t has no portable JSON form.
func shapeOf(t reflect.Type, dir direction) (*shape, error) {
	return builder{dir: dir}.build(t)
}

// builder walks a type. parents are the structs it is inside of.
type builder struct {
	dir     direction
	parents []reflect.Type
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
		return b.list(t)
	case reflect.Map:
		return b.dict(t)
	case reflect.Struct:
		return b.object(t)
	case reflect.Interface:
		return b.any(t)
	case reflect.Pointer:
		return nil, invalid("is a " + t.String() + "; pointers are for optional struct fields only")
	}
	return nil, invalid("is a " + t.String() + ", which has no JSON form")
}

var basicKinds = map[reflect.Kind]kind{
	reflect.Bool: boolean, reflect.String: text,
	reflect.Int: integer, reflect.Int8: integer, reflect.Int16: integer, reflect.Int32: integer, reflect.Int64: integer,
	reflect.Uint: unsigned, reflect.Uint8: unsigned, reflect.Uint16: unsigned, reflect.Uint32: unsigned, reflect.Uint64: unsigned,
	reflect.Float32: number, reflect.Float64: number,
}

// special returns the shape of a type that is more than its kind says, or nil.
func (b builder) special(t reflect.Type) (*shape, error) {
	switch {
	case isType(t, "time", "Duration"):
		return nil, invalid("is a time.Duration, which has no portable JSON form; use a number of seconds, or ISO 8601 text")
	case t == reflect.TypeFor[json.Number]():
		return &shape{kind: decimal, typ: t}, nil
	case t == reflect.TypeFor[json.RawMessage]():
		return b.untyped(&shape{kind: raw, typ: t})
	case implements(t, b.dir.text()):
		return &shape{kind: textual, typ: t}, nil
	case implements(t, b.dir.json()):
		return nil, invalid("is a " + t.String() + ", which converts itself to or from JSON, so it has no derived schema")
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &shape{kind: base64ed, typ: t}, nil
	}
	return nil, nil
}

// isType compares by name: naming a type of package time here would link most of
// that package into every tool.
func isType(t reflect.Type, pkg, name string) bool { return t.Name() == name && t.PkgPath() == pkg }

// implements looks at the methods of *t too.
func implements(t, iface reflect.Type) bool {
	return t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(iface)
}

func (b builder) any(t reflect.Type) (*shape, error) {
	if t.NumMethod() > 0 {
		return nil, invalid("is the interface " + t.String() + ", which has no JSON form")
	}
	return b.untyped(&shape{kind: anything, typ: t})
}

// untyped lets values without one JSON type into outputs only: the schemas of
// inputs go to model APIs, and some refuse a property without a type.
func (b builder) untyped(s *shape) (*shape, error) {
	if b.dir == input {
		return nil, invalid("is a " + s.typ.String() + ", which has no single JSON type; use map[string]any, or a string with JSON in it")
	}
	return s, nil
}

func (b builder) list(t reflect.Type) (*shape, error) {
	elem, err := b.build(t.Elem())
	if err != nil {
		return nil, within("[]", err)
	}
	return &shape{kind: list, typ: t, elem: elem}, nil
}

func (b builder) dict(t reflect.Type) (*shape, error) {
	if t.Key().Kind() != reflect.String || implements(t.Key(), b.dir.text()) {
		return nil, invalid("is a " + t.String() + "; keys must be strings")
	}
	if t.Elem().Kind() == reflect.Interface && t.Elem().NumMethod() == 0 {
		return &shape{kind: dict, typ: t, elem: &shape{kind: anything, typ: t.Elem()}}, nil
	}
	elem, err := b.build(t.Elem())
	if err != nil {
		return nil, within("[]", err)
	}
	return &shape{kind: dict, typ: t, elem: elem}, nil
}

func (b builder) object(t reflect.Type) (*shape, error) {
	for _, p := range b.parents {
		if p == t {
			return nil, invalid("is a " + t.String() + ", which contains itself")
		}
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
		case name == "-" || !sf.IsExported() && !sf.Anonymous:
			continue
		case sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct && !implements(sf.Type, b.dir.text()):
			if err := b.addFields(s, sf.Type, at); err != nil {
				return err
			}
			continue
		}
		f, err := b.field(sf, at)
		if err != nil {
			return within(f.name, err)
		}
		if s.fieldIndex(f.name) >= 0 {
			return within(f.name, invalid("is the name of two fields"))
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
		case "omitempty", "omitzero":
			f.optional = true
		default:
			return f, invalid("has the json option " + quote(option) + "; known are omitempty and omitzero")
		}
	}
	if !validKey(name) {
		return f, invalid("is no name that every host takes; use 1 to 64 of letters, digits, _, . and -")
	}
	if !sf.IsExported() {
		return f, invalid("embeds an unexported type that is no struct")
	}
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		t, f.pointer, f.optional = t.Elem(), true, true
	}
	var err error
	if f.shape, err = b.build(t); err != nil {
		return f, err
	}
	return f, b.tags(&f, sf.Tag)
}

// fieldIndex returns where in s.fields the field called name is, or -1.
func (s *shape) fieldIndex(name string) int {
	for i := range s.fields {
		if s.fields[i].name == name {
			return i
		}
	}
	return -1
}
