package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestJSONToCSV(t *testing.T) {
	const noList = `json: this is no list; it must look like [{"name": "Ada"}, ...]`
	for _, c := range []struct {
		in   toCSVInput
		want string
	}{
		{toCSVInput{JSON: `[{"b":1.50,"a":"x,y"},{"c":{"d":[1]},"a":null}]`, Header: true}, "b,a,c\n1.50,\"x,y\",\n,,\"{\"\"d\"\":[1]}\"\n"},
		{toCSVInput{JSON: `[{"b":12345678901234567890,"a":true}]`, Columns: []string{"a", "z"}, Delimiter: "tab", Header: true}, "a\tz\ntrue\t\n"},
		{toCSVInput{JSON: `[{"a":"1\n2"}]`, Delimiter: "pipe"}, "\"1\n2\"\n"},
		{toCSVInput{JSON: `[{"a":1}]`, Columns: []string{}, Header: true}, "a\n1\n"},
		{toCSVInput{JSON: `[{"a":1},{"a":null},{"a":2}]`}, "1\n\"\"\n2\n"},
		{toCSVInput{JSON: `[]`, Header: true}, ""},
		{toCSVInput{JSON: `{}`}, noList},
		{toCSVInput{JSON: ``}, noList},
		{toCSVInput{JSON: `[{"a":1},2]`}, "json: item 2: this is no object"},
		{toCSVInput{JSON: `[{"a":1}`}, "json: the list does not end after item 1"},
		{toCSVInput{JSON: `[{1:2}]`}, "json: item 1: invalid character '1'"},
		{toCSVInput{JSON: `[{"a":}]`}, "json: item 1: invalid character '}' looking for beginning of value"},
		{toCSVInput{JSON: `[] []`}, "json: there is more after the list"},
	} {
		if c.in.Delimiter == "" {
			c.in.Delimiter = "comma"
		}
		if got := sdktest.Call(t, module, "json_to_csv", c.in); got.Text != c.want {
			t.Errorf("%+v: got %q, want %q", c.in, got.Text, c.want)
		}
	}
}
