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
