package portable

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

func inLanguages(all map[string]tool.Translation) tool.Spec {
	return tool.Spec{Name: "take", Title: "Take", Description: "Takes.", Translations: all, InputSchema: json.RawMessage(
		`{"type":"object","properties":{"id":{"type":"string","description":"The id.","maxLength":9},"n":{"type":"integer"}},"required":["id"]}`)}
}

func TestTranslated(t *testing.T) {
	all, err := Translated(inLanguages(map[string]tool.Translation{
		"ru": {Title: "Взять", Description: "Берёт.", Parameters: map[string]string{"id": "Ключ", "n": "Сколько"}},
		"zh": {},
	}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"object","properties":{"id":{"type":"string","description":"Ключ","maxLength":9},"n":{"type":"integer","description":"Сколько"}},"required":["id"]}`
	if ru := all["ru"]; ru.Name != "take" || ru.Title != "Взять" || ru.Description != "Берёт." || string(ru.InputSchema) != want {
		t.Errorf("ru is %+v, %s", ru, ru.InputSchema)
	}
	if zh, en := all["zh"], inLanguages(nil); !sameSpec(zh, en) {
		t.Errorf("zh is %+v", zh)
	}
	if all, err := Translated(inLanguages(nil)); all != nil || err != nil {
		t.Errorf("none: got %v, %v", all, err)
	}
}

func TestTranslationsAreChecked(t *testing.T) {
	many := map[string]tool.Translation{}
	for i := range maxLanguages + 1 {
		many[fmt.Sprintf("a%c", 'a'+i)] = tool.Translation{}
	}
	in := func(tr tool.Translation) map[string]tool.Translation { return map[string]tool.Translation{"ru": tr} }
	for want, all := range map[string]map[string]tool.Translation{
		"translations in 17 languages, at most 16":                    many,
		`translation "russian": not a language such as ru`:            {"russian": {}},
		`translation "RU": not a language such as ru`:                 {"RU": {}},
		"title: 201 characters, at most 200":                          in(tool.Translation{Title: strings.Repeat("я", 201)}),
		"description: 1001 characters, at most 1000":                  in(tool.Translation{Description: strings.Repeat("я", 1001)}),
		"description: hidden characters":                              in(tool.Translation{Description: "a\u202eb"}),
		"title: invalid UTF-8":                                        in(tool.Translation{Title: "\xff"}),
		`parameter "x": the input schema has no such property`:        in(tool.Translation{Parameters: map[string]string{"x": "y"}}),
		`parameter "id": 1001 characters, at most 1000`:               in(tool.Translation{Parameters: map[string]string{"id": strings.Repeat("я", 1001)}}),
		`parameter "id": hidden characters, allowed are visible ones`: in(tool.Translation{Parameters: map[string]string{"id": "a\u200bb"}}),
	} {
		if _, err := Translated(inLanguages(all)); !errors.Is(err, tool.ErrRejected) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What is published has one language.
func TestTranslationsAreNotPublished(t *testing.T) {
	got, _, err := Spec(inLanguages(map[string]tool.Translation{"ru": {Title: "Взять"}}))
	if err != nil || got.Translations != nil || got.Title != "Take" {
		t.Errorf("got %+v, %v", got, err)
	}
}
