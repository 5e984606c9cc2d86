package sdk

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"unicode/utf8"
)

// unmarshal decodes what a host wrote, ignoring members that v does not have.
func unmarshal(data []byte, v any) error {
	to := reflect.ValueOf(v).Elem()
	// RawMessage has a place here, as in an output: no model API sees the type.
	s, err := shapeOf(to.Type(), output)
	if err != nil {
		return err
	}
	d := decoder{data: data, lenient: true}
	return d.whole(to, s)
}

// decodeArguments decodes a tool's arguments; none at all mean {}.
func (s *shape) decodeArguments(data []byte, to reflect.Value) error {
	if len(data) == 0 || string(data) == "null" {
		data = []byte("{}")
	}
	d := decoder{data: data}
	return d.whole(to, s)
}

func (d *decoder) whole(v reflect.Value, s *shape) error {
	if err := d.value(v, s); err != nil {
		return err
	}
	return d.end()
}

// value decodes the next value into v, which is settable and of s's type.
func (d *decoder) value(v reflect.Value, s *shape) error {
	if found, want := d.kindName(), s.kind.schemaType(); want != "" && found != "" && found != want {
		if want != "integer" || found != "number" {
			return invalid("is " + article(found) + ", must be " + article(want))
		}
	}
	switch s.kind {
	case boolean:
		b, err := d.boolean()
		v.SetBool(b)
		return err
	case integer, unsigned, number, decimal:
		return d.numeric(v, s)
	case text, textual, base64ed:
		return d.textual(v, s)
	case list:
		return d.list(v, s)
	case dict:
		return d.dict(v, s)
	case object:
		return d.object(v, s)
	case raw:
		b, err := d.raw()
		v.SetBytes(b)
		return err
	}
	a, err := d.any()
	if a != nil {
		v.Set(reflect.ValueOf(a))
	}
	return err
}

func article(name string) string {
	switch name {
	case "null":
		return name
	case "array", "integer", "object":
		return "an " + name
	}
	return "a " + name
}

func (d *decoder) textual(v reflect.Value, s *shape) error {
	t, err := d.text()
	if err != nil {
		return err
	}
	switch s.kind {
	case textual:
		if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
			return u.UnmarshalText([]byte(t))
		}
		return invalid("is a " + s.typ.String() + ", which cannot be read")
	case base64ed:
		b, err := base64.StdEncoding.DecodeString(t)
		if err != nil {
			return invalid(quote(t) + " is no base64")
		}
		v.SetBytes(b)
		return nil
	}
	v.SetString(t)
	if err := s.checkEnum(t); err != nil {
		return err
	}
	return s.check(float64(utf8.RuneCountInString(t)), " characters")
}

func (d *decoder) list(v reflect.Value, s *shape) error {
	if err := d.open('['); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(s.typ, 0, 0))
	for n := 0; ; n++ {
		more, err := d.more(n == 0, ']')
		if err != nil {
			return err
		}
		if !more {
			return s.check(float64(n), " items")
		}
		v.Grow(1)
		v.SetLen(n + 1)
		if err := d.value(v.Index(n), s.elem); err != nil {
			return within("["+itoa(n)+"]", err)
		}
	}
}

func (d *decoder) dict(v reflect.Value, s *shape) error {
	v.Set(reflect.MakeMap(s.typ))
	return d.members(func(name string) error {
		elem := reflect.New(s.elem.typ).Elem()
		if err := d.value(elem, s.elem); err != nil {
			return within(cut(name), err)
		}
		v.SetMapIndex(reflect.ValueOf(name).Convert(s.typ.Key()), elem)
		return nil
	})
}

// members calls member with each name of the object that is next.
func (d *decoder) members(member func(name string) error) error {
	if err := d.open('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := d.more(first, '}')
		if err != nil || !more {
			return err
		}
		name, err := d.key()
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
}

func (d *decoder) object(v reflect.Value, s *shape) error {
	given := make([]bool, len(s.fields))
	err := d.members(func(name string) error {
		i := s.fieldIndex(name)
		if i >= 0 {
			var err error
			given[i], err = d.field(v, &s.fields[i])
			return err
		}
		if !d.lenient {
			return invalid("unknown property " + quote(name) + s.known())
		}
		_, err := d.raw()
		return err
	})
	if err != nil {
		return err
	}
	for i, f := range s.fields {
		if !given[i] {
			if err := f.absent(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// field decodes one property. null stands for an optional one that is absent:
// models write that, though a schema does not say so.
func (d *decoder) field(v reflect.Value, f *field) (given bool, err error) {
	if f.optional && d.kindName() == "null" && f.shape.kind != anything && f.shape.kind != raw {
		return false, d.word("null")
	}
	if err := d.value(f.target(v), f.shape); err != nil {
		return false, within(f.name, err)
	}
	return true, nil
}

// target returns where the field's value goes, behind its pointer if it has one.
func (f *field) target(v reflect.Value) reflect.Value {
	v = v.FieldByIndex(f.index)
	if !f.pointer {
		return v
	}
	v.Set(reflect.New(f.shape.typ))
	return v.Elem()
}

// absent does what a property that was not given asks for.
func (f *field) absent(v reflect.Value) error {
	switch {
	case !f.optional:
		return invalid("missing property " + quote(f.name))
	case f.def == nil:
		return nil
	}
	d := decoder{data: f.def}
	return d.whole(f.target(v), f.shape)
}

func (s *shape) known() string {
	if len(s.fields) == 0 {
		return "; there are none"
	}
	known := "; known are"
	for i, f := range s.fields {
		if i > 0 {
			known += ","
		}
		known += " " + f.name
	}
	return known
}

// raw takes the next value as it is written.
func (d *decoder) raw() ([]byte, error) {
	d.peek()
	start := d.pos
	if err := d.skip(); err != nil {
		return nil, err
	}
	return d.data[start:d.pos:d.pos], nil
}

// skip checks the next value without keeping it.
func (d *decoder) skip() error {
	switch d.kindName() {
	case "object":
		return d.members(func(string) error { return d.skip() })
	case "array":
		return d.items(d.skip)
	case "string":
		_, err := d.text()
		return err
	case "number":
		_, err := d.number()
		return err
	case "null":
		return d.word("null")
	}
	_, err := d.boolean()
	return err
}

// items calls item for each item of the array that is next.
func (d *decoder) items(item func() error) error {
	if err := d.open('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := d.more(first, ']')
		if err != nil || !more {
			return err
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// any decodes the next value as encoding/json would, numbers as json.Number.
func (d *decoder) any() (any, error) {
	switch d.kindName() {
	case "object":
		m := map[string]any{}
		return m, d.members(func(name string) error {
			a, err := d.any()
			m[name] = a
			return err
		})
	case "array":
		l := []any{}
		err := d.items(func() error {
			a, err := d.any()
			l = append(l, a)
			return err
		})
		return l, err
	case "string":
		return d.text()
	case "number":
		n, err := d.number()
		return json.Number(n), err
	case "null":
		return nil, d.word("null")
	}
	return d.boolean()
}
