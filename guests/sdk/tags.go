package sdk

import (
	"reflect"
	"strconv"
	"strings"
)

// bound is one end of a range, as the author wrote it and as a number.
type bound struct {
	text  string
	value float64
}

// tags reads the constraints of a field.
func (b builder) tags(f *field, tag reflect.StructTag) error {
	if err := f.shape.setEnum(tag); err != nil {
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
	if s.kind == list {
		s = s.elem
	}
	if s.kind != text {
		return invalid("has an enum; only strings and slices of strings can")
	}
	s.enum = strings.Split(values, ",")
	return nil
}

// bound reads the tag min or max; its name in the schema depends on the kind.
func (s *shape) bound(tag reflect.StructTag, name string) (*bound, error) {
	value, ok := tag.Lookup(name)
	if !ok {
		return nil, nil
	}
	if _, ok := boundNames[s.kind]; !ok {
		return nil, invalid("has a " + name + "; only numbers, strings and slices can")
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !isJSONNumber(value) {
		return nil, invalid("has " + name + " " + quote(value) + ", which is no number")
	}
	return &bound{value, n}, nil
}

// boundNames are the schema keywords for the two ends of a range. A json.Number
// has none here: comparing it exactly would need big numbers.
var boundNames = map[kind][2]string{
	integer: {"minimum", "maximum"}, unsigned: {"minimum", "maximum"}, number: {"minimum", "maximum"},
	text: {"minLength", "maxLength"}, list: {"minItems", "maxItems"},
}

// setDefault takes a string's default as it is and any other as JSON, and
// makes sure that it is a value which the field would accept.
func (f *field) setDefault(value string) error {
	f.def = []byte(value)
	if f.shape.kind == text || f.shape.kind == textual {
		f.def = appendString(nil, value)
	}
	f.optional = true
	d := decoder{data: f.def}
	if err := d.whole(reflect.New(f.shape.typ).Elem(), f.shape); err != nil {
		return prefixed("default", err)
	}
	return nil
}

// check holds a decoded value to the enum and the bounds of its shape. size is
// the number itself, or the length of a text or list; unit names what is counted.
func (s *shape) check(size float64, unit string) error {
	switch {
	case s.min != nil && size < s.min.value:
		return invalid(format(size) + unit + ", at least " + s.min.text)
	case s.max != nil && size > s.max.value:
		return invalid(format(size) + unit + ", at most " + s.max.text)
	}
	return nil
}

func (s *shape) checkEnum(value string) error {
	if s.enum == nil {
		return nil
	}
	for _, e := range s.enum {
		if e == value {
			return nil
		}
	}
	return invalid(quote(value) + " is none of " + strings.Join(s.enum, ", "))
}

func format(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
