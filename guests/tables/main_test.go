package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestCSVToJSON(t *testing.T) {
	for args, want := range map[string]string{
		`{"csv":"name,zip\nAda,007\n\"a,\"\"b\"\"\",\n"}`:                            `{"columns":["name","zip"],"rows":[{"name":"Ada","zip":"007"},{"name":"a,\"b\"","zip":""}]}`,
		`{"csv":"a;b\n1.50;true\n007;\n0x1;x","delimiter":"semicolon","infer":true}`: `{"columns":["a","b"],"rows":[{"a":1.50,"b":true},{"a":"007","b":null},{"a":"0x1","b":"x"}]}`,
		`{"csv":"1\t<&>","delimiter":"tab","header":false}`:                          `{"columns":["column_1","column_2"],"rows":[{"column_1":"1","column_2":"<&>"}]}`,
		`{"csv":"\ufeffa\n1"}`:        `{"columns":["a"],"rows":[{"a":"1"}]}`,
		`{"csv":""}`:                  `{"columns":[],"rows":[]}`,
		`{"csv":"a,b\n1"}`:            `csv: record on line 2: wrong number of fields: each needs 2, as many as the first; is comma the right delimiter?`,
		`{"csv":"a,b\n\"1,2"}`:        `csv: parse error on line 2, column 5: extraneous or missing " in quoted-field`,
		`{"csv":"a,b,a\n"}`:           `csv: columns 1 and 3 are both called "a"; rename one, or set header to false`,
		`{"csv":"a","delimiter":","}`: `invalid arguments for csv_to_json: delimiter: "," is none of comma, semicolon, tab, pipe`,
	} {
		if got := sdktest.Call(t, module, "csv_to_json", args); got.Text != want {
			t.Errorf("%s: got %s, want %s", args, got.Text, want)
		}
	}
}

func TestJSONToCSV(t *testing.T) {
	const noList = `json: this is no list; it must look like [{"name": "Ada"}, ...]`
	for _, c := range []struct {
		in   toCSVInput
		want string
	}{
		{toCSVInput{JSON: `[{"b":1.50,"a":"x,y"},{"c":{"d":[1]},"a":null}]`, Header: true}, "b,a,c\n1.50,\"x,y\",\n,,\"{\"\"d\"\":[1]}\"\n"},
		{toCSVInput{JSON: `[{"b":12345678901234567890,"a":true}]`, Columns: []string{"a", "z"}, Delimiter: "tab", Header: true}, "a\tz\ntrue\t\n"},
		{toCSVInput{JSON: `[{"a":"1\n2"}]`, Delimiter: "pipe"}, "\"1\n2\"\n"},
		{toCSVInput{JSON: `[]`, Header: true}, ""},
		{toCSVInput{JSON: `{}`}, noList},
		{toCSVInput{JSON: ``}, noList},
		{toCSVInput{JSON: `[{"a":1},2]`}, "json: item 2: this is no object"},
		{toCSVInput{JSON: `[{"a":1}`}, "json: the list does not end after item 1"},
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

func TestCSVToMarkdown(t *testing.T) {
	for args, want := range map[string]string{
		`{"csv":"a,b\n1|2,\"x\ny\"\n"}`:                   "| a | b |\n| --- | --- |\n| 1\\|2 | x<br>y |\n",
		`{"csv":"1|2","delimiter":"pipe","header":false}`: "| column_1 | column_2 |\n| --- | --- |\n| 1 | 2 |\n",
		`{"csv":""}`: "",
	} {
		if got := sdktest.Call(t, module, "csv_to_markdown", args); got.Text != want {
			t.Errorf("%s: got %q, want %q", args, got.Text, want)
		}
	}
}
