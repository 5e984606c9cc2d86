package rawjson

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestE11_Check(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"scalar", `1`, ""},
		{"spaces around", " \t\r\n{} \n", ""},
		{"big integer", `9007199254740993`, ""},
		{"large exponent", `1e999`, ""},
		{"every escape", `"\"\\\/\b\f\n\r\té"`, ""},
		{"pair of surrogates", `"\ud83d\ude00"`, ""},
		{"same key in two objects", `{"a":{"a":1},"b":{"a":2}}`, ""},
		{"seventeen keys", keys(17, -1), ""},

		{"nothing", ``, "offset 0, at $: found the end, expected a value"},
		{"byte order mark", "\ufeff1", `found '\ufeff'`},
		{"two values", `1 2`, "offset 2, at $: found '2' after the value"},
		{"key twice", `{"a":1,"b":{"c":1,"c":2}}`, `offset 18, at $.b: key c stands twice`},
		{"key twice, one escaped", `{"a":1,"\u0061":2}`, `key a stands twice`},
		{"key twice among many", keys(40, 3), `key k3 stands twice`},
		{"high surrogate alone", `["\ud800"]`, "at $[0]: surrogate 0xd800 without its partner"},
		{"high surrogate twice", `"\ud800\ud800"`, "without its partner"},
		{"low surrogate alone", `"\udc00\ud800"`, "surrogate 0xdc00"},
		{"high surrogate, then text", `"\ud800x"`, "without its partner"},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", "offset 6, at $: invalid UTF-8"},
		{"overlong", "\"\xc0\x80\"", "offset 1, at $: invalid UTF-8"},
		{"encoded surrogate", "\"\xed\xa0\x80\"", "invalid UTF-8"},
		{"control in a string", "\"\n\"", "control character U+000A"},
		{"wrong escape", `"\x"`, "wrong escape"},
		{"short escape", `"\u00"`, "wrong escape"},
		{"open string", `"abc`, "a string without its end"},
		{"open escape", `"\`, "wrong escape"},
		{"trailing comma", `[1,]`, "at $[1]: found ']', expected a value"},
		{"no comma", `[1 2]`, "expected a comma"},
		{"no colon", `{"a" 1}`, "expected a colon"},
		{"bare key", `{a:1}`, "expected a key in double quotes"},
		{"leading zero", `01`, "found '1' after the value"},
		{"plus", `+1`, "expected a value"},
		{"no fraction", `1.`, "expected a digit"},
		{"no integer", `-`, "expected a digit"},
		{"no exponent", `1e+`, "expected a digit"},
		{"huge exponent", `[1e10000]`, "at $[0]: an exponent over 9999"},
		{"long number", strings.Repeat("1", 1001), "a number of 1001 characters, at most 1000"},
		{"wrong literal", `nul`, "expected null"},
		{"NaN", `NaN`, "expected a value"},
		{"too deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), "nested deeper than 64"},
		{"10,001 brackets", strings.Repeat("[", 10_001), "nested deeper than 64"},
		{"as deep as allowed", strings.Repeat("[", 64) + strings.Repeat("]", 64), ""},
		{"odd key in the path", `{"a b":[nul]}`, `at $."a b"[0]:`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check([]byte(c.in), MaxDepth)
			if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) && c.want != "" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// keys returns an object of n keys; if again is not negative, that one comes
// once more at the end.
func keys(n, again int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":0,`, i)
	}
	if again >= 0 {
		fmt.Fprintf(&b, `"k%d":0,`, again)
	}
	return "{" + strings.TrimSuffix(b.String(), ",") + "}"
}

func TestCheckBoundsItsOwnStack(t *testing.T) {
	err := Check([]byte(strings.Repeat("[", 1<<20)), 1<<30)
	if err == nil || !strings.Contains(err.Error(), "nested deeper than 10000") {
		t.Errorf("got %v", err)
	}
}

func TestCheckKeepsErrorsShort(t *testing.T) {
	deep := strings.Repeat(`{"`+strings.Repeat("long ", 1000)+`":`, 60) + "x"
	if err := Check([]byte(deep), MaxDepth); err == nil || len(err.Error()) > 4000 {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
	}
}

func ExampleCheck() {
	fmt.Println(Check([]byte(`{"id":12345678901234567890}`), MaxDepth))
	fmt.Println(Check([]byte(`{"user":"a","user":"b"}`), MaxDepth))
	fmt.Println(Check([]byte(`[[[]]]`), 2))
	// Output:
	// <nil>
	// json: offset 12, at $: key user stands twice in one object
	// json: offset 2, at $[0][0]: nested deeper than 2, the most allowed
}

// FuzzCheck: what we accept, encoding/json accepts and reads as we do.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e+3,"\ud83d\ude00\n"],"b":null}`, `[true,false]`, `{"a":1,"a":2}`, `"\ud800"`, "\xff", `1e10000`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		n, err := Parse(raw, MaxDepth)
		if (Check(raw, MaxDepth) == nil) != (err == nil) {
			t.Fatal("Check and Parse disagree")
		}
		if err != nil {
			return
		}
		var theirs, ours any
		if err := json.Unmarshal(raw, &theirs); err != nil && !strings.Contains(err.Error(), "cannot unmarshal number") {
			t.Fatalf("encoding/json refuses it: %v", err)
		}
		if err := json.Unmarshal(n.Canonical().Compact(), &ours); err != nil && !strings.Contains(err.Error(), "cannot unmarshal number") {
			t.Fatalf("encoding/json refuses what we wrote: %v", err)
		}
		a, _ := json.Marshal(theirs)
		b, _ := json.Marshal(ours)
		if string(a) != string(b) {
			t.Fatalf("read as %s, written as %s", a, b)
		}
	})
}
