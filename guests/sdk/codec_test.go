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

// decodeTo decodes arguments into a T, as a call does.
func decodeTo[T any](t testing.TB, data string) (T, error) {
	t.Helper()
	var v T
	s, err := shapeOf(reflect.TypeFor[T](), input)
	if err != nil {
		t.Fatal(err)
	}
	err = s.decodeArguments([]byte(data), reflect.ValueOf(&v).Elem())
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
	Big  *big.Int       `json:"big"`
	Rate float64        `json:"rate" default:"0.5"`
	Enum []string       `json:"enum,omitempty" enum:"a,b"`
	Even string         `json:"even,omitempty" min:"2" max:"4"`
}

func TestDecode(t *testing.T) {
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
		{`{"big":"123456789012345678901234567890"}`, values{Big: bigInt("123456789012345678901234567890")}},
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

func bigInt(s string) *big.Int {
	i, _ := new(big.Int).SetString(s, 10)
	return i
}

func TestDecodeErrors(t *testing.T) {
	long := strings.Repeat("9", 50)
	for data, want := range map[string]string{
		`[]`:                           "is an array, must be an object",
		`{`:                            "invalid JSON at byte 1: expected a property name",
		`{}x`:                          "invalid JSON at byte 2: more after the value",
		`{"s":"a`:                      "s: invalid JSON at byte 7: string without an end",
		`{"s":"\x"}`:                   "s: invalid JSON at byte 7: unknown escape",
		`{"s":"\u12g4"}`:               "s: invalid JSON at byte 8: expected four hex digits",
		"{\"s\":\"\n\"}":               "s: invalid JSON at byte 6: control character in a string",
		`{"s":"a" "b":1}`:              "invalid JSON at byte 9: expected , or }",
		`{"s":"a",}`:                   "invalid JSON at byte 9: expected a property name",
		`{"l":[1,]}`:                   "l[1]: invalid JSON at byte 8: expected a number",
		`{"i64":01}`:                   "invalid JSON at byte 8: expected , or }",
		`{"b":truth}`:                  "b: invalid JSON at byte 5: expected true",
		`{"x":1}`:                      `unknown property "x"; known are i8, i64, u64, f32, n, s, b, l, m, free, p, raw, t, big, rate, enum, even`,
		`{"S":"case"}`:                 `unknown property "S"; known are i8, i64, u64, f32, n, s, b, l, m, free, p, raw, t, big, rate, enum, even`,
		`{"s":1}`:                      "s: is a number, must be a string",
		`{"i64":"1"}`:                  "i64: is a string, must be an integer",
		`{"i64":1.5}`:                  "i64: 1.5 is no whole number",
		`{"i64":1e-400}`:               "i64: 1e-400 is no whole number",
		`{"i64":1e99999999999999}`:     "i64: 1e99999999999999 is out of range for int64",
		`{"i8":128}`:                   "i8: 128 is out of range for int8",
		`{"u64":-1}`:                   "u64: -1 is out of range for uint64",
		`{"i64":` + long + `}`:         "i64: " + long[:40] + "... is out of range for int64",
		`{"f32":1e39}`:                 "f32: 1e39 is out of range for float32",
		`{"l":[1,"2"]}`:                "l[1]: is a string, must be an integer",
		`{"l":[1,null]}`:               "l[1]: is null, must be an integer",
		`{"l":[1,2,3,4]}`:              "l: 4 items, at most 3",
		`{"m":{"a":{}}}`:               "m.a: is an object, must be an integer",
		`{"raw":"?"}`:                  `raw: "?" is no base64`,
		`{"t":"yesterday"}`:            `t: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`,
		`{"enum":["a","c"]}`:           `enum[1]: "c" is none of a, b`,
		`{"even":"a"}`:                 "even: 1 characters, at least 2",
		`{"free":` + nested(300) + `}`: "free: invalid JSON at byte 211: nested deeper than 200",
	} {
		if got, err := decodeTo[values](t, data); err == nil || err.Error() != want {
			t.Errorf("%s: got %+v, %v; want %s", data, got, err, want)
		}
	}
}

// nested is an object that holds depth-1 arrays in each other.
func nested(depth int) string {
	return `{"":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
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

type celsius float64

func (c celsius) MarshalText() ([]byte, error) { return json.Marshal(float64(c)) }

func TestEncode(t *testing.T) {
	type out struct {
		V any `json:"v"`
	}
	one := 1
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, `null`},
		{[]string(nil), `[]`},
		{map[string]int(nil), `{}`},
		{struct {
			A []int `json:"a"`
			B *int  `json:"b"`
			C *int  `json:"c"`
			D []int `json:"d,omitempty"`
			E int   `json:"e,omitzero"`
		}{C: &one}, `{"a":[],"c":1}`},
		{math.MaxUint64 - uint64(1), `18446744073709551614`},
		{int64(math.MinInt64), `-9223372036854775808`},
		{1e21, `1e+21`},
		{1e20, `100000000000000000000`},
		{1e-7, `1e-07`},
		{-0.25, `-0.25`},
		{float32(0.1), `0.1`},
		{json.Number("1.50"), `1.50`},
		{json.Number(""), `0`},
		{json.RawMessage(`{"a": 1}`), `{"a": 1}`},
		{json.RawMessage(nil), `null`},
		{"a\"\\\n\t\x01\u2028<&>\xff", "\"a\\\"\\\\\\n\\t\\u0001\u2028<&>\ufffd\""},
		{map[string]any{"b": 1, "a": []any{true, nil}}, `{"a":[true,null],"b":1}`},
		{[]byte("hi"), `"aGk="`},
		{&address{City: "Ulm"}, `{"city":"Ulm"}`},
		{time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC), `"2024-02-29T12:00:00Z"`},
		{*bigInt("12345678901234567890"), `"12345678901234567890"`},
		{celsius(21.5), `"21.5"`},
	} {
		got, err := marshal(out{c.v})
		if want := `{"v":` + c.want + `}`; err != nil || string(got) != want {
			t.Errorf("%#v: got %s, %v; want %s", c.v, got, err, want)
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	type out struct {
		V any `json:"v"`
	}
	loop := map[string]any{}
	loop["x"] = loop
	for _, c := range []struct {
		v    any
		want string
	}{
		{math.NaN(), "v: NaN has no JSON form"},
		{[]float64{1, math.Inf(-1)}, "v[1]: -Inf has no JSON form"},
		{json.Number("1,5"), `v: "1,5" is no JSON number`},
		{json.RawMessage(`{"a":}`), "v: invalid JSON at byte 5: expected false"},
		{json.RawMessage(`1 2`), "v: invalid JSON at byte 2: more after the value"},
		{map[string]any{"f": func() {}}, "v.f: is a func(), which has no JSON form"},
	} {
		if got, err := marshal(out{c.v}); err == nil || err.Error() != c.want {
			t.Errorf("%#v: got %s, %v; want %s", c.v, got, err, c.want)
		}
	}
	if _, err := marshal(out{loop}); err == nil || !strings.HasSuffix(err.Error(), "nested deeper than 200") {
		t.Errorf("a map inside itself: got %v", err)
	}
}
