package sdk

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

type celsius float64

func (c celsius) MarshalText() ([]byte, error) { return json.Marshal(float64(c)) }

// lists has a nil slice or map in every place that a type can have one.
type lists struct {
	common
	List   []int              `json:"list"`
	Map    map[string]int     `json:"map"`
	Bytes  []byte             `json:"bytes"`
	Lists  [][]int            `json:"lists"`
	Maps   map[string][]int   `json:"maps"`
	Inner  inner              `json:"inner"`
	Inners map[string][]inner `json:"inners"`
	Kept   inner              `json:"kept,omitempty"`
	Left   inner              `json:"left,omitzero"`
	Unset  *inner             `json:"unset,omitempty"`
	Set    *inner             `json:"set,omitempty"`
	Few    []int              `json:"few,omitempty"`
	Any    any                `json:"any"`
	Raw    json.RawMessage    `json:"raw"`
}

type inner struct {
	L []int `json:"l"`
}

// What is nil in Go is empty in JSON, so that it fits its schema.
func TestNil(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{lists{}, `{"id":"","list":[],"map":{},"bytes":"","lists":[],"maps":{},"inner":{"l":[]},"inners":{},"kept":{"l":[]},"any":null,"raw":null}`},
		{lists{Lists: [][]int{nil, {1}}, Maps: map[string][]int{"a": nil}, Inners: map[string][]inner{"a": nil, "b": {{}}}, Set: &inner{}, Left: inner{L: []int{}}},
			`{"id":"","list":[],"map":{},"bytes":"","lists":[[],[1]],"maps":{"a":[]},"inner":{"l":[]},"inners":{"a":[],"b":[{"l":[]}]},` +
				`"kept":{"l":[]},"left":{"l":[]},"set":{"l":[]},"any":null,"raw":null}`},
		{map[string][]string(nil), `{}`},
		{map[string][]string{"a": nil}, `{"a":[]}`},
	} {
		if got, err := resultOf(t, c.v); err != nil || got != c.want {
			t.Errorf("%+v: got  %s, %v\nwant %s", c.v, got, err, c.want)
		}
	}
}

// A tool may go on using what it returned.
func TestResultIsCopied(t *testing.T) {
	v := lists{Lists: [][]int{nil}, Maps: map[string][]int{"a": nil}, Set: &inner{}, Inners: map[string][]inner{"a": {{}}}}
	if _, err := resultOf(t, v); err != nil {
		t.Fatal(err)
	}
	if v.Lists[0] != nil || v.Maps["a"] != nil || v.Set.L != nil || v.Inners["a"][0].L != nil {
		t.Errorf("became %+v", v)
	}
}

func resultOf(t *testing.T, v any) (string, error) {
	t.Helper()
	s, err := shapeOf(reflect.TypeOf(v), output)
	if err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	b, err := s.encode(reflect.ValueOf(v))
	return string(b), err
}

func TestResult(t *testing.T) {
	one := 1
	for _, c := range []struct {
		v    any
		want string
	}{
		{struct {
			A []int `json:"a"`
			B *int  `json:"b,omitempty"`
			C *int  `json:"c,omitempty"`
			D []int `json:"d,omitempty"`
			E int   `json:"e,omitzero"`
		}{C: &one}, `{"a":[],"c":1}`},
		{struct {
			A int `json:"-,"` //nolint:staticcheck // it means the name "-"
			B int `json:"-"`
		}{1, 2}, `{"-":1}`},
		{math.MaxUint64 - uint64(1), `18446744073709551614`},
		{int64(math.MinInt64), `-9223372036854775808`},
		{1e21, `1e+21`},
		{1e20, `100000000000000000000`},
		{1e-7, `1e-7`},
		{-0.25, `-0.25`},
		{float32(0.1), `0.1`},
		{json.Number("1.50"), `1.50`},
		{json.Number("123456789012345678901234567890"), `123456789012345678901234567890`},
		{json.Number(""), `0`},
		{json.RawMessage(`{"a": 1}`), `{"a":1}`},
		{"a\"\\\n\t\x01ä<&>\xff", `"a\"\\\n\t\u0001ä<&>\ufffd"`},
		{map[string]string{"b": "<", "a": "&"}, `{"a":"&","b":"<"}`},
		{map[string]any{"b": 1, "a": []any{true, nil, "<"}, "c": &address{City: "Ulm"}}, `{"a":[true,null,"<"],"b":1,"c":{"city":"Ulm"}}`},
		{[]byte("hi"), `"aGk="`},
		{address{City: "Ulm"}, `{"city":"Ulm"}`},
		{time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC), `"2024-02-29T12:00:00Z"`},
		{map[string]celsius{"x": 21.5}, `{"x":"21.5"}`},
	} {
		if got, err := resultOf(t, c.v); err != nil || got != c.want {
			t.Errorf("%#v: got %s, %v; want %s", c.v, got, err, c.want)
		}
	}
}

func TestResultErrors(t *testing.T) {
	loop := map[string]any{}
	loop["x"] = loop
	for _, c := range []struct {
		v    any
		want string
	}{
		{math.NaN(), "unsupported value: NaN"},
		{[]float64{1, math.Inf(-1)}, "unsupported value: -Inf"},
		{json.Number("1,5"), `invalid number literal "1,5"`},
		{json.RawMessage(`{"a":}`), "invalid character '}' looking for beginning of value"},
		{json.RawMessage(`1 2`), "invalid character '2' after top-level value"},
		{map[string]any{"f": func() {}}, "unsupported type: func()"},
		{loop, "encountered a cycle via map[string]interface {}"},
	} {
		if got, err := resultOf(t, c.v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%#v: got %s, %v; want %s", c.v, got, err, c.want)
		}
	}
}
