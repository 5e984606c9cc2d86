package sdk

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
)

// arguments checks a tool's arguments, as decode read them, and decodes them into
// the struct that to points at. None at all mean {}.
func (s *shape) arguments(args, to any) error {
	if args == nil {
		args = map[string]any{}
	}
	checked, err := s.check(args)
	if err != nil {
		return err
	}
	b, err := encode(checked)
	if err != nil {
		return err
	}
	return decode(b, to)
}

// check holds v, as decode read it, to s, in words for a model that can try
// again. It returns v the way encoding/json takes it for s.typ: integers as plain
// digits, defaults in their places. v is used up.
func (s *shape) check(v any) (any, error) {
	if s.kind == reference {
		return s.checkReference(v)
	}
	found, want := jsonType(v), s.kind.schemaType()
	if want == "" {
		return v, nil
	}
	if found != want && (found != "number" || want != "integer") {
		return nil, fmt.Errorf("is %s, must be %s", article(found), article(want))
	}
	switch v := v.(type) {
	case json.Number:
		return s.checkNumber(string(v))
	case string:
		if value, ok := s.alias[v]; ok {
			v = value
		}
		return v, s.checkString(v)
	case []any:
		return v, s.checkList(v)
	case map[string]any:
		if s.kind == dict {
			return v, s.checkDict(v)
		}
		return v, s.checkObject(v)
	}
	return v, nil
}

func article(name string) string {
	switch {
	case name == "null":
		return name
	case strings.ContainsAny(name[:1], "aio"):
		return "an " + name
	}
	return "a " + name
}

func (s *shape) checkString(v string) error {
	switch s.kind {
	case textual:
		u, ok := reflect.New(s.typ).Interface().(encoding.TextUnmarshaler)
		if !ok {
			return fmt.Errorf("is a %s, which cannot be read", s.typ)
		}
		return u.UnmarshalText([]byte(v))
	case binary:
		if _, err := base64.StdEncoding.DecodeString(v); err != nil {
			return fmt.Errorf("%s is no base64", quote(v))
		}
		return nil
	}
	if s.enum != nil && !slices.Contains(s.enum, v) {
		return fmt.Errorf("%s is none of %s", quote(v), strings.Join(s.enum, ", "))
	}
	return s.checkBounds(float64(utf8.RuneCountInString(v)), " characters")
}

func (s *shape) checkList(v []any) (err error) {
	if err := s.checkBounds(float64(len(v)), " items"); err != nil {
		return err
	}
	for i := range v {
		if v[i], err = s.elem.check(v[i]); err != nil {
			return within("["+strconv.Itoa(i)+"]", err)
		}
	}
	return nil
}

func (s *shape) checkDict(v map[string]any) (err error) {
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if v[key], err = s.elem.check(v[key]); err != nil {
			return within(abi.Cut(key, maxShown), err)
		}
	}
	return nil
}

// checkObject takes null for an optional property that is absent: models write
// that, though a schema does not say so.
func (s *shape) checkObject(v map[string]any) (err error) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if !s.has(name) {
			return fmt.Errorf("unknown property %s; %s", quote(name), s.known())
		}
	}
	for _, f := range s.fields {
		value, given := v[f.name]
		switch {
		case value == nil && f.def != nil:
			v[f.name] = f.def
		case value == nil && f.optional:
			delete(v, f.name)
		case !given:
			return fmt.Errorf("missing property %s", quote(f.name))
		default:
			if v[f.name], err = f.shape.check(value); err != nil {
				return within(f.name, err)
			}
		}
	}
	return nil
}

func (s *shape) known() string {
	var names []string
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	if names == nil {
		return "there are none"
	}
	return "known are " + strings.Join(names, ", ")
}

// checkBounds holds a number, or the count of something, to the range of s. unit
// names what is counted.
func (s *shape) checkBounds(n float64, unit string) error {
	found := strconv.FormatFloat(n, 'f', -1, 64) + unit
	switch {
	case s.min != nil && n < s.min.value:
		return fmt.Errorf("%s, at least %s", found, s.min.written)
	case s.max != nil && n > s.max.value:
		return fmt.Errorf("%s, at most %s", found, s.max.written)
	}
	return nil
}
