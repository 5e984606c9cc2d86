package sdk

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
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

// FuzzJSON holds the codec to encoding/json's reading of any JSON, and checks
// that what it writes reads the same again.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e+10,"\u00e4\n\/",true,false,null,{}]}`, `"\ud800"`, ` 0 `, `01`, `[1,]`, `-`, "\"\xff\"", `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		d := decoder{data: in}
		got, err := d.any()
		if err == nil {
			err = d.end()
		}
		std := json.NewDecoder(bytes.NewReader(in))
		std.UseNumber()
		var want any
		valid := json.Valid(in)
		if valid {
			if err := std.Decode(&want); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			if valid && bytes.Count(in, []byte("["))+bytes.Count(in, []byte("{")) <= maxDepth {
				t.Fatalf("%q: %v, but it is JSON", in, err)
			}
			return
		}
		if !valid || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %#v, want %#v (valid %v)", in, got, want, valid)
		}
		again(t, got)
	})
}

func again(t *testing.T, v any) {
	t.Helper()
	b, err := marshal(map[string]any{"v": v})
	if err != nil || !utf8.Valid(b) {
		t.Fatalf("%#v: wrote %q, %v", v, b, err)
	}
	d := decoder{data: b}
	back, err := d.any()
	if err != nil || !reflect.DeepEqual(back, map[string]any{"v": v}) {
		t.Fatalf("%#v: wrote %q, read %#v, %v", v, b, back, err)
	}
}
