package sdk

import (
	"fmt"
	"reflect"

	"github.com/hutch-run/hutch/protocol/tool"
)

// Said is an output with the text beside it, for tools whose words depend on more than
// the output: what a method Text would return.
type Said[Out any] struct {
	Out  Out
	Text string
}

func (s Said[Out]) said() (value any, text string) { return s.Out, s.Text }

type saying interface {
	said() (value any, text string)
}

// result wraps what the tool's function returned.
func (t Tool) result(out any) Result {
	if r, ok := out.(Result); ok {
		return whole(r)
	}
	if t.out == nil {
		return tool.Text(reflect.ValueOf(out).String())
	}
	said, text := "", false
	if s, ok := out.(saying); ok {
		out, said = s.said()
		text = true
	}
	structured, err := t.out.encode(reflect.ValueOf(out))
	if err != nil {
		return tool.Failed(fmt.Sprintf("internal error in tool %s: result: %v", t.spec.Name, err))
	}
	r := tool.Text(string(structured))
	if text {
		r.Content[0].Text = said
	} else if texter, ok := out.(interface{ Text() string }); ok {
		r.Content[0].Text = texter.Text()
	}
	r.Structured = structured
	return r
}

// whole makes a hand-made result fit for the wire: no host takes null content,
// and structured content beside isError breaks some.
func whole(r Result) Result {
	if r.Content == nil {
		r.Content = []Content{}
	}
	if r.IsError {
		r.Structured = nil
	}
	return r
}

// encode returns v as JSON that fits the schema of s.
func (s *shape) encode(v reflect.Value) ([]byte, error) {
	return encode(s.filled(v).Interface())
}

// fill puts empty slices and maps in the places of nil ones, which would be null.
// What v refers to belongs to the tool, so it is copied first.
func (s *shape) fill(v reflect.Value) {
	switch s.kind {
	case binary, list:
		to := reflect.MakeSlice(s.typ, v.Len(), v.Len())
		reflect.Copy(to, v)
		v.Set(to)
		for i := 0; s.kind == list && i < v.Len(); i++ {
			s.elem.fill(v.Index(i))
		}
	case dict:
		to := reflect.MakeMapWithSize(s.typ, v.Len())
		for i := v.MapRange(); i.Next(); {
			to.SetMapIndex(i.Key(), s.elem.filled(i.Value()))
		}
		v.Set(to)
	case object:
		for _, f := range s.fields {
			f.fill(v.FieldByIndex(f.index))
		}
	}
}

// filled returns a filled copy of v, which may be what nobody can set.
func (s *shape) filled(v reflect.Value) reflect.Value {
	to := reflect.New(s.typ)
	to.Elem().Set(v)
	s.fill(to.Elem())
	return to.Elem()
}

// fill leaves alone what encoding/json leaves out. That is no struct, unless it
// has the option omitzero.
func (f field) fill(v reflect.Value) {
	switch {
	case f.optional && v.IsZero() && (f.omitzero || v.Kind() != reflect.Struct):
	case f.pointer:
		v.Set(f.shape.filled(v.Elem()).Addr())
	default:
		f.shape.fill(v)
	}
}
