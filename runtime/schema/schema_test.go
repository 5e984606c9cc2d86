package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/rawjson"
)

// doubling returns a schema of n levels that each try the next one twice.
func doubling(n int, combine string) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(combine, i, i+1))
	}
	defs = append(defs, fmt.Sprintf(`"l%d":{"type":"string"}`, n))
	return `{"$defs":{` + strings.Join(defs, ",") + `},"$ref":"#/$defs/l0"}`
}

// A few hundred bytes of schema ask for 2^40 steps. None of them gets them.
func TestHostileSchemasRunOutOfSteps(t *testing.T) {
	ref := `{"$ref":"#/$defs/l%[2]d"}`
	var ones []string
	for range 5_000 {
		ones = append(ones, "1")
	}
	wide := "[" + strings.Join(ones, ",") + "]"
	tests := []struct{ name, schema, value string }{
		{"anyOf", doubling(40, `"l%d":{"anyOf":[`+ref+`,`+ref+`]}`), `1`},
		{"allOf", doubling(40, `"l%d":{"allOf":[`+ref+`,`+ref+`]}`), `"fits"`},
		{"not", doubling(40, `"l%d":{"not":{"anyOf":[`+ref+`,`+ref+`]}}`), `1`},
		{"if", doubling(40, `"l%d":{"if":`+ref+`,"then":`+ref+`,"else":`+ref+`}`), `1`},
		{"dependentSchemas", doubling(40, `"l%d":{"dependentSchemas":{"a":`+ref+`,"b":`+ref+`}}`), `{"a":1,"b":1}`},
		{"draft 7 dependencies", strings.Replace(doubling(40, `"l%d":{"dependencies":{"a":`+ref+`,"b":`+ref+`}}`),
			`{`, `{"$schema":"http://json-schema.org/draft-07/schema#",`, 1), `{"a":1,"b":1}`},
		{"recursion", `{"anyOf":[{"items":{"$ref":"#"},"minItems":9},{"items":{"$ref":"#"},"minItems":9}]}`,
			strings.Repeat("[", 60) + strings.Repeat("]", 60)},
		{"enum", `{"items":{"enum":[` + strings.Repeat(`1e300,`, 5000) + `2]}}`, wide},
		{"pattern", `{"pattern":"` + strings.Repeat("(a?){9}", 50) + `$"}`, `"` + strings.Repeat("a", 1<<20) + `b"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := compileSchema(json.RawMessage(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := rawjson.Check([]byte(tt.value), rawjson.MaxDepth); err != nil {
				t.Fatal(err)
			}
			if _, err := c.validate(json.RawMessage(tt.value)); !errors.Is(err, errTooMuch) {
				t.Errorf("validate = %v, want %v", err, errTooMuch)
			}
			if _, err := c.validate(json.RawMessage(`true`)); errors.Is(err, errTooMuch) && tt.value[0] != '1' && tt.value[0] != '"' {
				t.Errorf("a cheap value afterwards: %v", err)
			}
		})
	}
}

// A megabyte of plain arguments is no attack.
func TestLargePlainValuesFit(t *testing.T) {
	var words []string
	for i := range 500 {
		words = append(words, fmt.Sprintf(`"word %d"`, i))
	}
	c, err := compileSchema(json.RawMessage(`{"type":"object","properties":{"rows":{"type":"array","uniqueItems":true,"items":{
		"type":"object","required":["a"],"properties":{"a":{"type":"integer","minimum":0},"b":{"enum":[` + strings.Join(words, ",") + `]},
		"c":{"type":"string","pattern":"^[a-z ]{1,20}$"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for i := range 25_000 {
		rows = append(rows, fmt.Sprintf(`{"a":%d,"b":"word %d","c":"some text"}`, i, i%500))
	}
	value := `{"rows":[` + strings.Join(rows, ",") + `]}`
	if found, err := c.validate(json.RawMessage(value)); err != nil || found != nil {
		t.Errorf("%d bytes: %v, %v", len(value), found, err)
	}
}

// Reasons cost memory, so only so many are looked for.
func TestManyProblemsAreNotAllExplained(t *testing.T) {
	c, err := compileSchema(json.RawMessage(`{"items":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	few := `[` + strings.Repeat("1,", 1000) + `1]`
	if found, err := c.validate(json.RawMessage(few)); err != nil || !strings.HasSuffix(problemText(found), "; 195 more problems") {
		t.Errorf("1,001 problems: %q, %v", problemText(found), err)
	}
	many := `[` + strings.Repeat("1,", 200_000) + `1]`
	if found, err := c.validate(json.RawMessage(many)); err != nil || problemText(found) != "does not fit the schema, and is too large to say where" {
		t.Errorf("200,001 problems: %.200q, %v", problemText(found), err)
	}
}

func TestSchemasThatCannotBeCompiled(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"too many values", `{"enum":[` + strings.Repeat(`1,`, maxSchemaNodes) + `1]}`, "more than 10000 values"},
		{"long paths", `{"` + strings.Repeat("k", 100_000) + `":[` + strings.Repeat(`1,`, 50) + `1]}`, "more than 10000 values, or keys of"},
		{"elsewhere", `{"$ref":"https://evil.test/s.json"}`, "references stay within the schema"},
		{"a file", `{"$ref":"file:///etc/passwd"}`, "references stay within the schema"},
		{"relative", `{"$ref":"other.json"}`, "references stay within the schema"},
		{"other dialect", `{"$schema":"https://evil.test/meta"}`, "references stay within the schema"},
		{"nowhere", `{"$ref":"#/$defs/x"}`, "not found"},
		{"against the metaschema", `{"type":"strnig"}`, `is no JSON Schema: "type": found string "strnig", allowed are`},
		{"broken pattern", `{"pattern":"a("}`, `"pattern": found string "a(", must be a regular expression: `},
		{"broken name", `{"patternProperties":{"[":{}}}`, `the name "[" is not allowed here`},
		{"huge number", `{"maximum":1e999}`, "number 1e999 has 1000 digits when it is written out, at most 400"},
		{"dynamic", `{"$dynamicRef":"#meta","$dynamicAnchor":"meta"}`, "not supported: use $ref"},
		{"long pattern", `{"pattern":"` + strings.Repeat("a", maxPattern+1) + `"}`, "pattern of 1001 bytes, at most 1000"},
		{"huge pattern", `{"pattern":"(` + strings.Repeat("ab", 60) + `){99}"}`, "more than 5000 steps when its repetitions are written out"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := compileSchema(json.RawMessage(tt.schema))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("compileSchema = %v, want %q", err, tt.want)
			}
			if err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 400) {
				t.Errorf("not one short line: %q", err)
			}
		})
	}
}

func TestOnlyHotSchemasStayCompiled(t *testing.T) {
	hot := Hot{most: 2}
	all := []*Schema{{raw: []byte(`{}`)}, {raw: []byte(`{}`)}, {raw: []byte(`{}`)}}
	for _, i := range []int{0, 1, 0, 2} {
		if _, err := all[i].get(&hot); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{true, false, true} {
		if got := all[i].ready.Load() != nil; got != want {
			t.Errorf("schema %d compiled %t, want %t: the one used longest ago goes", i, got, want)
		}
	}
}

// Whatever schema and value are, validating ends and does not panic.
func FuzzValidate(f *testing.F) {
	f.Add([]byte(`{"type":"object","required":["id","by"],"properties":{"id":{"pattern":"^TE-[0-9]+$"},"by":{"enum":["a"]}}}`), []byte(`{"id":"TE-1"}`))
	f.Add([]byte(`{"$ref":"#"}`), []byte(`1`))
	f.Add([]byte(`{"unevaluatedProperties":false,"anyOf":[{"properties":{"a":true}}]}`), []byte(`{"a":1,"b":2}`))
	f.Add([]byte(doubling(9, `"l%d":{"anyOf":[{"$ref":"#/$defs/l%[2]d"},{"$ref":"#/$defs/l%[2]d"}]}`)), []byte(`[1e400]`))
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		if rawjson.Check(schema, rawjson.MaxDepth) != nil || rawjson.Check(value, rawjson.MaxDepth) != nil {
			return
		}
		c, err := compileSchema(schema)
		if err != nil {
			return
		}
		found, err := c.validate(value)
		again, err2 := c.validate(value)
		if problemText(found) != problemText(again) || (err == nil) != (err2 == nil) {
			t.Errorf("%q, %v; then %q, %v", problemText(found), err, problemText(again), err2)
		}
	})
}
