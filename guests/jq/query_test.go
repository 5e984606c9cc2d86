package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestJQ(t *testing.T) {
	for args, want := range map[string]string{
		`{"program":".items[]|select(.n>1)|.name","value":{"items":[{"n":1,"name":"a"},{"n":2,"name":"b"}]}}`: `{"results":["b"],"truncated":false}`,
		`{"program":".","json":"{\"big\":12345678901234567890, \"x\":\"<&>\"}"}`:                              `{"results":[{"big":12345678901234567890,"x":"<&>"}],"truncated":false}`,
		`{"program":".+1","json":"9007199254740993 2"}`:                                                       `{"results":[9007199254740994,3],"truncated":false}`,
		`{"program":".a","value":{"a":9007199254740993}}`:                                                     `{"results":[9007199254740993],"truncated":false}`,
		`{"program":"1+1"}`:                                           `{"results":[2],"truncated":false}`,
		`{"program":".","value":{}}`:                                  `{"results":[{}],"truncated":false}`,
		`{"program":"nan, infinite"}`:                                 `{"results":[null,1.7976931348623157e+308],"truncated":false}`,
		`{"program":"range(infinite)","limit":3}`:                     `{"results":[0,1,2],"truncated":true}`,
		`{"program":"1,2,3","limit":3}`:                               `{"results":[1,2,3],"truncated":false}`,
		`{"program":"1, halt, 2"}`:                                    `{"results":[1],"truncated":false}`,
		`{"program":"if . == 2 then halt else . end","json":"1 2 3"}`: `{"results":[1],"truncated":false}`,
		`{"program":"empty"}`:                                         `{"results":[],"truncated":false}`,
		`{"program":"$ENV|length"}`:                                   `{"results":[0],"truncated":false}`,
	} {
		if got := sdktest.Call(t, module, "jq", args); string(got.Structured) != want {
			t.Errorf("%s: got %s %s, want %s", args, got.Structured, got.Text, want)
		}
	}
}

func TestJQText(t *testing.T) {
	if got := sdktest.Call(t, module, "jq", `{"program":"1,\"a\""}`); got.Text != "1\n\"a\"\n" {
		t.Errorf("got %q", got.Text)
	}
}

func TestJQErrors(t *testing.T) {
	for args, want := range map[string]string{
		`{"program":".a["}`:                         `program: unexpected EOF`,
		`{"program":"foo"}`:                         `program: function not defined: foo/0`,
		`{"program":"1, .a.b","json":"{\"a\":[]}"}`: `after 1 results: expected an object but got: array ([])`,
		`{"program":"error(\"no\")"}`:               `after 0 results: error: no`,
		`{"program":"input"}`:                       `program: input(s)/0 is not allowed`,
		`{"program":".","json":"{\"a\":1} {"}`:      `json: value 2: unexpected EOF`,
		`{"program":".","json":"1","value":{}}`:     `both json and value are given: leave one out`,
		`{"program":".","limit":0}`:                 `invalid arguments for jq: limit: 0, at least 1`,
		`{"program":"include \"x\"; ."}`:            `program: cannot load module: "x"`,
	} {
		if got := sdktest.Call(t, module, "jq", args); got.Text != want || !got.IsError {
			t.Errorf("%s: got %q, want %q", args, got.Text, want)
		}
	}
}
