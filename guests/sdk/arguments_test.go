package sdk

import (
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"
)

// decodeTo decodes arguments into a T, as a call does. data is JSON, or nothing.
func decodeTo[T any](t testing.TB, data string) (T, error) {
	t.Helper()
	var v T
	s, err := shapeOf(reflect.TypeFor[T](), input)
	if err != nil {
		t.Fatal(err)
	}
	var args any
	if data != "" {
		if err := decode([]byte(data), &args); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	}
	err = s.arguments(args, &v)
	return v, err
}

type values struct {
	I8   int8           `json:"i8,omitempty"`
	I64  int64          `json:"i64,omitempty"`
	U64  uint64         `json:"u64,omitempty"`
	F32  float32        `json:"f32,omitempty"`
	N    json.Number    `json:"n,omitempty"`
	S    string         `json:"s,omitempty"`
	B    bool           `json:"b,omitempty"`
	L    []int          `json:"l,omitempty" max:"3"`
	M    map[string]int `json:"m,omitempty"`
	Free map[string]any `json:"free,omitempty"`
	P    *string        `json:"p"`
	Raw  []byte         `json:"raw,omitempty"`
	T    time.Time      `json:"t,omitzero"`
	Rat  *big.Rat       `json:"rat"`
	Rate float64        `json:"rate" default:"0.5"`
	Enum []string       `json:"enum,omitempty" enum:"a,b"`
	Even string         `json:"even,omitempty" min:"2" max:"4"`
	Ref  Ref            `json:"ref,omitempty" max:"20"`
}

func TestArguments(t *testing.T) {
	text := "hi"
	for _, c := range []struct {
		data string
		want values
	}{
		{``, values{}},
		{`null`, values{}},
		{` {} `, values{}},
		{`{"i64":9223372036854775807,"u64":18446744073709551615}`, values{I64: math.MaxInt64, U64: math.MaxUint64}},
		{`{"i64":-9223372036854775808}`, values{I64: math.MinInt64}},
		{`{"i8":5.0}`, values{I8: 5}},
		{`{"i8":-0.5e1}`, values{I8: -5}},
		{`{"i64":12300e-2}`, values{I64: 123}},
		{`{"i64":9007199254740993.0}`, values{I64: 9007199254740993}},
		{`{"u64":-0}`, values{}},
		{`{"i8":0e99}`, values{}},
		{`{"n":1.10000000000000000000000000001}`, values{N: "1.10000000000000000000000000001"}},
		{`{"f32":1e-3}`, values{F32: 1e-3}},
		{`{"s":"a\"\\\/\b\f\n\r\tä\u00e4\ud83d\ude00"}`, values{S: "a\"\\/\b\f\n\r\tää😀"}},
		{`{"s":"\ud83d x \udc00"}`, values{S: "\ufffd x \ufffd"}},
		{"{\"s\":\"\xff\"}", values{S: "\ufffd"}},
		{`{"s":"NUL\u0000"}`, values{S: "NUL\x00"}},
		{`{"b":true,"l":[],"m":{}}`, values{B: true, L: []int{}, M: map[string]int{}}},
		{`{"l":[1,2],"m":{"x":1}}`, values{L: []int{1, 2}, M: map[string]int{"x": 1}}},
		{`{"free":{"a":[1,null,true,"x",{"b":0.10}]}}`, values{Free: map[string]any{
			"a": []any{json.Number("1"), nil, true, "x", map[string]any{"b": json.Number("0.10")}}}}},
		{`{"p":"hi"}`, values{P: &text}},
		{`{"p":null,"l":null,"s":null}`, values{}},
		{`{"raw":"aGk="}`, values{Raw: []byte("hi")}},
		{`{"t":"2024-02-29T12:00:00Z"}`, values{T: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)}},
		{`{"rat":"123456789012345678901234567890/7"}`, values{Rat: rat("123456789012345678901234567890/7")}},
		{`{"n":123456789012345678901234567890}`, values{N: "123456789012345678901234567890"}},
		{`{"free":{"a":123456789012345678901234567890}}`, values{Free: map[string]any{"a": json.Number("123456789012345678901234567890")}}},
		{`{"ref":"a-1"}`, values{Ref: "a-1"}},
		{`{"ref":7}`, values{Ref: "7"}},
		{`{"ref":0.70e1}`, values{Ref: "7"}},
		{`{"ref":-9223372036854775808}`, values{Ref: "-9223372036854775808"}},
		{`{"ref":null}`, values{}},
		{`{"rate":null}`, values{}},
		{`{"rate":2}`, values{Rate: 2}},
		{`{"enum":["a","b"],"even":"äöü€"}`, values{Enum: []string{"a", "b"}, Even: "äöü€"}},
	} {
		if c.want.Rate == 0 {
			c.want.Rate = 0.5
		}
		got, err := decodeTo[values](t, c.data)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v", c.data, got, err)
		}
	}
}

func rat(s string) *big.Rat {
	r, _ := new(big.Rat).SetString(s)
	return r
}

func TestArgumentErrors(t *testing.T) {
	long := strings.Repeat("9", 50)
	for data, want := range map[string]string{
		`[]`:                              "is an array, must be an object",
		`{"x":1}`:                         `unknown property "x"; known are i8, i64, u64, f32, n, s, b, l, m, free, p, raw, t, rat, rate, enum, even, ref`,
		`{"S":"case"}`:                    `unknown property "S"; known are i8, i64, u64, f32, n, s, b, l, m, free, p, raw, t, rat, rate, enum, even, ref`,
		`{"s":1}`:                         "s: is a number, must be a string",
		`{"i64":"1"}`:                     "i64: is a string, must be an integer",
		`{"i64":1.5}`:                     "i64: 1.5 is no whole number",
		`{"i64":1e-400}`:                  "i64: 1e-400 is no whole number",
		`{"i64":1e99999999999999}`:        "i64: 1e99999999999999 is out of range for int64",
		`{"i8":128}`:                      "i8: 128 is out of range for int8",
		`{"u64":-1}`:                      "u64: -1 is out of range for uint64",
		`{"i64":` + long + `}`:            "i64: " + long[:37] + "… is out of range for int64",
		`{"f32":1e39}`:                    "f32: 1e39 is out of range for float32",
		`{"l":[1,"2"]}`:                   "l[1]: is a string, must be an integer",
		`{"l":[1,null]}`:                  "l[1]: is null, must be an integer",
		`{"m":{"b":1.5,"a":{}}}`:          "m.a: is an object, must be an integer",
		`{"free":[]}`:                     "free: is an array, must be an object",
		`{"s":1,"z":1,"y":1}`:             `unknown property "y"; known are i8, i64, u64, f32, n, s, b, l, m, free, p, raw, t, rat, rate, enum, even, ref`,
		`{"rat":"x"}`:                     "rat: math/big: cannot unmarshal \"x\" into a *big.Rat",
		`{"l":[1,2,3,4]}`:                 "l: 4 items, at most 3",
		`{"m":{"a":{}}}`:                  "m.a: is an object, must be an integer",
		`{"raw":"?"}`:                     `raw: "?" is no base64`,
		`{"t":"yesterday"}`:               `t: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`,
		`{"enum":["a","c"]}`:              `enum[1]: "c" is none of a, b`,
		`{"even":"a"}`:                    "even: 1 characters, at least 2",
		`{"ref":1.5}`:                     "ref: 1.5 is no whole number",
		`{"ref":1e99}`:                    "ref: 1e99 is out of range for int64",
		`{"ref":` + long + `}`:            "ref: " + long[:37] + "… is out of range for int64",
		`{"ref":true}`:                    "ref: is a boolean, must be a string or an integer",
		`{"ref":["1"]}`:                   "ref: is an array, must be a string or an integer",
		`{"ref":"aaaaaaaaaaaaaaaaaaaaa"}`: "ref: 21 characters, at most 20",
	} {
		if got, err := decodeTo[values](t, data); err == nil || err.Error() != want {
			t.Errorf("%s: got %+v, %v; want %s", data, got, err, want)
		}
	}
}

// A tool that runs without a host that resolves them takes other spellings too.
func TestAliases(t *testing.T) {
	type in struct {
		One  string   `json:"one" enum:"a,b" alias:"x=a" default:"x"`
		Many []string `json:"many,omitempty" enum:"a,b" alias:"x=a,y=b"`
	}
	got, err := decodeTo[in](t, `{"many":["x","b","y"]}`)
	if want := (in{"a", []string{"a", "b", "b"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := decodeTo[in](t, `{"one":"y"}`); err == nil || err.Error() != `one: "y" is none of a, b` {
		t.Errorf("got %v", err)
	}
}

func TestMissingProperty(t *testing.T) {
	type in struct {
		Home address `json:"home"`
	}
	for data, want := range map[string]string{
		`{}`:            `missing property "home"`,
		`{"home":{}}`:   `home: missing property "city"`,
		`{"home":null}`: `home: is null, must be an object`,
	} {
		if _, err := decodeTo[in](t, data); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", data, err, want)
		}
	}
	if _, err := decodeTo[struct{}](t, `{"x":1}`); err == nil || err.Error() != `unknown property "x"; there are none` {
		t.Errorf("got %v", err)
	}
}
