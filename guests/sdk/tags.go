package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// bound is one end of a range, as the author wrote it and as a number.
type bound struct {
	written json.Number
	value   float64
}

// text is what stands in the schema: nothing if there is no bound.
func (b *bound) text() json.Number {
	if b == nil {
		return ""
	}
	return b.written
}

// tags reads the constraints of a field.
func (b builder) tags(f *field, tag reflect.StructTag) error {
	if err := f.shape.setEnum(tag); err != nil {
		return err
	}
	if err := b.setAlias(f, tag); err != nil {
		return err
	}
	var err error
	if f.shape.min, err = f.shape.bound(tag, "min"); err != nil {
		return err
	}
	if f.shape.max, err = f.shape.bound(tag, "max"); err != nil {
		return err
	}
	if def, ok := tag.Lookup("default"); ok && b.dir == input {
		return f.setDefault(def)
	}
	return nil
}

// setEnum gives the enumeration to the string, or to the strings of a list.
func (s *shape) setEnum(tag reflect.StructTag) error {
	values, ok := tag.Lookup("enum")
	if !ok {
		return nil
	}
	s = s.strings()
	if s.kind != text {
		return errors.New("has an enum; only strings and slices of strings can")
	}
	s.enum = strings.Split(values, ",")
	return nil
}

// setAlias reads other spellings of the values of an enumeration.
func (b builder) setAlias(f *field, tag reflect.StructTag) error {
	written, ok := tag.Lookup("alias")
	if !ok {
		return nil
	}
	s := f.shape.strings()
	if s.enum == nil || b.dir == output || len(b.parents) != 1 {
		return errors.New("has an alias; only what has an enum, in the input itself, can")
	}
	s.alias = map[string]string{}
	for pair := range strings.SplitSeq(written, ",") {
		alias, value, ok := strings.Cut(pair, "=")
		if !ok || alias == "" || !slices.Contains(s.enum, value) {
			return fmt.Errorf("has the alias %s; write it as other=value, with a value of its enum", quote(pair))
		}
		if slices.Contains(s.enum, alias) || s.alias[alias] != "" {
			return fmt.Errorf("has the alias %s, which stands for something already", quote(alias))
		}
		s.alias[alias] = value
	}
	return nil
}

// strings returns the shape of the strings of a list of them, or s.
func (s *shape) strings() *shape {
	if s.kind == list {
		return s.elem
	}
	return s
}

// bound reads the tag min or max. A json.Number has none: comparing it exactly
// would need big numbers.
func (s *shape) bound(tag reflect.StructTag, name string) (*bound, error) {
	written, ok := tag.Lookup(name)
	if !ok {
		return nil, nil
	}
	switch s.kind {
	case integer, unsigned, number, text, reference, list:
	default:
		return nil, fmt.Errorf("has a %s; only numbers, strings and slices can", name)
	}
	n, err := strconv.ParseFloat(written, 64)
	if err != nil || !json.Valid([]byte(written)) {
		return nil, fmt.Errorf("has %s %s, which is no number", name, quote(written))
	}
	return &bound{json.Number(written), n}, nil
}

// setDefault takes a string's default as it is and any other as JSON, and
// makes sure that it is a value which the field would accept.
func (f *field) setDefault(written string) error {
	var value any = written
	if f.shape.kind.schemaType() != "string" {
		if err := decode([]byte(written), &value); err != nil {
			return fmt.Errorf("default: %s is no JSON", quote(written))
		}
	}
	var err error
	if f.def, err = f.shape.check(value); err != nil {
		return errors.New("default: " + err.Error()) // its path is one inside of the default
	}
	f.optional = true
	return nil
}
