package event

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/hutch-run/hutch/protocol/chat"
)

// Validate returns a [FieldError] if AG-UI would not allow an event, whatever came
// before it.
func Validate(e Event) error {
	if e == nil {
		return &FieldError{Found: nothing, Allowed: "an event"}
	}
	if fault := structFault("", reflect.ValueOf(e)); fault != nil {
		return fault.within(string(e.Type()))
	}
	return nil
}

func structFault(path string, v reflect.Value) *FieldError {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			if fault := structFault(path, v.Field(i)); fault != nil {
				return fault
			}
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if fault := valueFault(join(path, name), v.Field(i), ruleOf(field)); fault != nil {
			return fault
		}
	}
	if f, ok := v.Interface().(faulty); ok {
		if fault := f.fault(); fault != nil {
			return fault.within(path)
		}
	}
	return nil
}

func valueFault(path string, v reflect.Value, is rule) *FieldError {
	switch known := v.Interface().(type) {
	case json.RawMessage:
		return rawFault(path, known, is)
	case chat.Content:
		if is.required && known.IsZero() {
			return &FieldError{Field: path, Found: nothing, Allowed: kindOf(v.Type(), is)}
		}
		return contentFault(path, known)
	case chat.Message:
		return messageFault(path, known)
	}
	switch v.Kind() {
	case reflect.String:
		return is.text(path, v.String())
	case reflect.Int64:
		return inRange(path, v, is)
	case reflect.Struct:
		return structFault(path, v)
	case reflect.Pointer:
		if !v.IsNil() {
			return valueFault(path, v.Elem(), is)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if fault := valueFault(at(path, i), v.Index(i), rule{}); fault != nil {
				return fault
			}
		}
	}
	return nil
}

func rawFault(path string, raw json.RawMessage, is rule) *FieldError {
	switch {
	case len(raw) == 0 && !is.required:
		return nil
	case len(raw) == 0:
		return &FieldError{Field: path, Found: nothing, Allowed: kindOf(reflect.TypeOf(raw), is)}
	case !json.Valid(raw):
		return &FieldError{Field: path, Found: "text that is not JSON", Allowed: kindOf(reflect.TypeOf(raw), is)}
	}
	trimmed := strings.TrimLeft(string(raw), " \t\r\n")
	switch {
	case !is.null && strings.HasPrefix(trimmed, "null"), is.object && trimmed[0] != '{':
		return &FieldError{Field: path, Found: what([]byte(trimmed)), Allowed: kindOf(reflect.TypeOf(raw), is)}
	}
	return nil
}
