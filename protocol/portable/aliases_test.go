package portable

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

const aliasedSchema = `{"type":"object","properties":{"status":{"type":"string","enum":["todo","in_review"]},
"statuses":{"type":"array","items":{"type":"string","enum":["todo","in_review"]}},"n":{"type":"integer","enum":[1]},
"mixed":{"type":"string","enum":["a",1]},"twice":{"type":"string","enum":["a_b","a-b"]},"free":{"type":"string"}}}`

func aliased(aliases map[string]map[string]string) tool.Spec {
	return tool.Spec{Name: "t", Description: "d", InputSchema: json.RawMessage(aliasedSchema), Aliases: aliases}
}

func TestAliasesResolve(t *testing.T) {
	words := map[string]string{"review": "in_review", "inreview": "in_review"}
	a, err := AliasesOf(aliased(map[string]map[string]string{"status": words, "statuses": words}))
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		`{"status":"review"}`:                 `{"status":"in_review"}`,
		`{ "n" : 1.0, "status":"In-Review" }`: `{"n":1.0,"status":"in_review"}`,
		`{"statuses":["REVIEW", 7, "todo"]}`:  `{"statuses":["in_review",7,"todo"]}`,
		`{"status":"\u0072eview"}`:            `{"status":"in_review"}`,
		`{ "status": "in_review" }`:           `{ "status": "in_review" }`,
		`{ "status": "other"}`:                `{ "status": "other"}`,
		`{ "status": {"status":"review"}}`:    `{ "status": {"status":"review"}}`,
		`{ "statuses": [["review"]]}`:         `{ "statuses": [["review"]]}`,
		`{ "free": "review"}`:                 `{ "free": "review"}`,
	} {
		if got := string(a.Resolve(json.RawMessage(given))); got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
	}
	var none *Aliases
	if got := string(none.Resolve(json.RawMessage(`{ }`))); got != `{ }` {
		t.Errorf("without aliases: got %s", got)
	}
}

func TestAliasesAreChecked(t *testing.T) {
	many, parameters := map[string]string{}, map[string]map[string]string{}
	for i := range maxAliases + 1 {
		many[fmt.Sprint("w", i)] = "todo"
		parameters[fmt.Sprint("p", i)] = map[string]string{"a": "todo"}
	}
	for want, aliases := range map[string]map[string]map[string]string{
		`aliases: of 65 parameters, at most 32`:                    parameters,
		`of "status": 65, allowed are 1 to 64`:                     {"status": many},
		`of "status": 0, allowed are 1 to 64`:                      {"status": {}},
		`of "free": allowed for a string, or`:                      {"free": {"a": "todo"}},
		`of "none": allowed for a string, or`:                      {"none": {"a": "todo"}},
		`of "n": allowed for a string, or`:                         {"n": {"a": "1"}},
		`of "mixed": allowed for a string, or`:                     {"mixed": {"b": "a"}},
		`of "twice": the values "a_b" and "a-b" are two spellings`: {"twice": {"c": "a_b"}},
		`"x" stands for "done", which is no value of the enum`:     {"status": {"x": "done"}},
		`"In Review" is a spelling of "in_review" already`:         {"status": {"In Review": "todo"}},
		`"a-b" is a spelling of "todo" already`:                    {"statuses": {"A_B": "todo", "a-b": "in_review"}},
		`"" has 0 characters, allowed are 1 to 64`:                 {"status": {"": "todo"}},
		`has 65 characters, allowed are 1 to 64`:                   {"status": {strings.Repeat("a", 65): "todo"}},
		`"a\u200bb" has hidden characters`:                         {"status": {"a\u200bb": "todo"}},
	} {
		if _, err := AliasesOf(aliased(aliases)); !errors.Is(err, tool.ErrRejected) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if a, err := AliasesOf(aliased(nil)); a != nil || err != nil {
		t.Errorf("none: got %v, %v", a, err)
	}
}

// What is published has no word of other spellings.
func TestAliasesAreNotPublished(t *testing.T) {
	got, _, err := Spec(aliased(map[string]map[string]string{"status": {"review": "in_review"}}))
	if err != nil || got.Aliases != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzAliases(f *testing.F) {
	f.Add([]byte(`{"status":"review","statuses":["In Review"]}`))
	f.Add([]byte(`{"status":1}`))
	words := map[string]string{"review": "in_review"}
	a, err := AliasesOf(aliased(map[string]map[string]string{"status": words, "statuses": words}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		once := a.Resolve(args)
		if json.Valid(args) && !json.Valid(once) {
			t.Fatalf("%q became %q", args, once)
		}
		if again := a.Resolve(once); string(again) != string(once) {
			t.Fatalf("%q became %q, and that %q", args, once, again)
		}
	})
}
