package sdk

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/hutch-run/hutch/protocol/rawjson"
)

// FuzzCall feeds whole calls to the path that a host's bytes take: whatever
// comes in, what goes out is a result in JSON or an error.
func FuzzCall(f *testing.F) {
	for _, s := range []string{
		`{"params":{"name":"act","arguments":{"what":"x","bytes":[1,2.0]}}}`,
		`{"method":"tools/call","params":{"_meta":null,"name":"say","arguments":{"what":"\ud83d\ude00"}}}`,
		`{"params":{"name":"nan"}}`, `{"params":[`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := testModule.Call(&listener{}, in)
		if err == nil && !json.Valid(out) {
			t.Fatalf("%q: result is no JSON: %q", in, out)
		}
	})
}

// FuzzArguments holds accepted arguments to what encoding/json reads in them, where
// it reads the same JSON, and to themselves: written and read again they are equal.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{"i8":5.0,"u64":18446744073709551615,"n":-0.50,"s":"\u00e4\n","l":[1e0],"m":{"a":-0},"raw":"aGk="}`,
		`{"free":{"a":[1,null,true,{"b":1e400}]},"p":null,"t":"2024-02-29T12:00:00Z","rat":"1/7","enum":["a"],"even":"ab"}`,
		`{"i64":0.5e1,"f32":1e-3}`, `{"ref":"a"}`, `{"ref":7.0}`, `[]`, `{"i64":1e99}`,
	} {
		f.Add([]byte(s))
	}
	s, err := shapeOf(reflect.TypeFor[values](), input)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var args any
		if rawjson.Check(in, rawjson.MaxDepth) != nil || decode(in, &args) != nil {
			return // a host refuses it
		}
		var got, again values
		want := values{Rate: 0.5}
		if s.arguments(args, &got) != nil {
			return
		}
		text := written(t, got)
		if decode(in, &want) == nil && written(t, want) != text {
			t.Fatalf("%s: read as %s, want %s", in, text, written(t, want))
		}
		if err := decode([]byte(text), &again); err != nil || written(t, again) != text {
			t.Fatalf("%s: read as %s, and that as %s, %v", in, text, written(t, again), err)
		}
	})
}

func written(t *testing.T, v values) string {
	t.Helper()
	b, err := encode(v)
	if err != nil {
		t.Fatalf("%+v: %v", v, err)
	}
	return string(b)
}
