package sdk

import (
	"encoding"
	"encoding/base64"
	"math"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"
)

// marshal encodes a value of a vocabulary type.
func marshal(v any) ([]byte, error) {
	s, err := shapeOf(reflect.TypeOf(v), output)
	if err != nil {
		return nil, err
	}
	return s.encode(reflect.ValueOf(v))
}

// encode returns v, whose type is s's, as compact JSON.
func (s *shape) encode(v reflect.Value) ([]byte, error) {
	e := encoder{}
	err := e.value(v, s)
	return e.out, err
}

type encoder struct {
	out   []byte
	depth int
}

func (e *encoder) value(v reflect.Value, s *shape) error {
	switch s.kind {
	case boolean:
		e.out = strconv.AppendBool(e.out, v.Bool())
	case integer:
		e.out = strconv.AppendInt(e.out, v.Int(), 10)
	case unsigned:
		e.out = strconv.AppendUint(e.out, v.Uint(), 10)
	case number:
		return e.float(v)
	case decimal:
		return e.decimal(v.String())
	case text:
		e.out = appendString(e.out, v.String())
	case textual:
		return e.textual(v)
	case base64ed:
		e.out = append(base64.StdEncoding.AppendEncode(append(e.out, '"'), v.Bytes()), '"')
	case raw:
		return e.raw(v.Bytes())
	default:
		return e.nested(v, s)
	}
	return nil
}

// nested encodes what has values inside, counting how deep that goes.
func (e *encoder) nested(v reflect.Value, s *shape) error {
	if e.depth++; e.depth > maxDepth {
		return invalid("nested deeper than " + itoa(maxDepth))
	}
	defer func() { e.depth-- }()
	switch s.kind {
	case list:
		return e.list(v, s)
	case dict:
		return e.dict(v, s)
	case object:
		return e.object(v, s)
	}
	return e.any(v)
}

func (e *encoder) float(v reflect.Value) error {
	f, bits := v.Float(), v.Type().Bits()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return invalid(strconv.FormatFloat(f, 'g', -1, bits) + " has no JSON form")
	}
	form := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	e.out = strconv.AppendFloat(e.out, f, form, -1, bits)
	return nil
}

// decimal encodes a json.Number; the zero one is 0.
func (e *encoder) decimal(n string) error {
	if n == "" {
		n = "0"
	}
	if !isJSONNumber(n) {
		return invalid(quote(n) + " is no JSON number")
	}
	e.out = append(e.out, n...)
	return nil
}

func (e *encoder) textual(v reflect.Value) error {
	if !v.CanAddr() { // the method may be the pointer's
		p := reflect.New(v.Type()).Elem()
		p.Set(v)
		v = p
	}
	m, ok := v.Addr().Interface().(encoding.TextMarshaler)
	if !ok {
		return invalid("is a " + v.Type().String() + ", which cannot be written")
	}
	b, err := m.MarshalText()
	if err != nil {
		return err
	}
	e.out = appendString(e.out, string(b))
	return nil
}

// raw encodes what is JSON already; none is null.
func (e *encoder) raw(b []byte) error {
	if len(b) == 0 {
		b = []byte("null")
	}
	d := decoder{data: b, depth: e.depth}
	if err := d.skip(); err != nil {
		return err
	}
	e.out = append(e.out, b...)
	return d.end()
}

func (e *encoder) list(v reflect.Value, s *shape) error {
	e.out = append(e.out, '[')
	for i := range v.Len() {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := e.value(v.Index(i), s.elem); err != nil {
			return within("["+itoa(i)+"]", err)
		}
	}
	e.out = append(e.out, ']')
	return nil
}

// dict encodes a map with its keys sorted, so that equal maps are equal bytes.
func (e *encoder) dict(v reflect.Value, s *shape) error {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return compare(a.String(), b.String()) })
	e.out = append(e.out, '{')
	for _, k := range keys {
		e.key(k.String())
		if err := e.value(v.MapIndex(k), s.elem); err != nil {
			return within(cut(k.String()), err)
		}
	}
	e.out = append(e.out, '}')
	return nil
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

func (e *encoder) key(name string) {
	if e.out[len(e.out)-1] != '{' {
		e.out = append(e.out, ',')
	}
	e.out = append(appendString(e.out, name), ':')
}

func (e *encoder) object(v reflect.Value, s *shape) error {
	e.out = append(e.out, '{')
	for i := range s.fields {
		f := &s.fields[i]
		fv := v.FieldByIndex(f.index)
		if f.optional && empty(fv) {
			continue
		}
		if f.pointer {
			fv = fv.Elem()
		}
		e.key(f.name)
		if err := e.value(fv, f.shape); err != nil {
			return within(f.name, err)
		}
	}
	e.out = append(e.out, '}')
	return nil
}

// empty is what omitempty and omitzero leave out.
func empty(v reflect.Value) bool {
	if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

// any encodes what an interface holds.
func (e *encoder) any(v reflect.Value) error {
	if v.IsNil() {
		e.out = append(e.out, "null"...)
		return nil
	}
	v = v.Elem()
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	s, err := shapeOf(v.Type(), output)
	if err != nil {
		return err
	}
	return e.value(v, s)
}

// appendString writes s as a JSON string, without HTML's escapes: the reader is
// a model. What is no UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
