package portable

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

// maxLanguages is how many translations a tool may have.
const maxLanguages = 16

var languageRE = regexp.MustCompile(`^[a-z]{2,3}(-[a-z0-9]{2,8})?$`)

// Translated returns a tool as it is defined in each language that it has translations in,
// nil without any. What a translation leaves out stays as it is. The title, the description
// and the descriptions of parameters are all that it can change: names and the rest of the
// schemas are the same in all languages. The result is no portable one yet: see [Spec].
func Translated(s tool.Spec) (map[string]tool.Spec, error) {
	if len(s.Translations) == 0 {
		return nil, nil
	}
	if n := len(s.Translations); n > maxLanguages {
		return nil, rejectf("tool %s: translations in %d languages, at most %d", shown(s.Name), n, maxLanguages)
	}
	all := map[string]tool.Spec{}
	for _, language := range slices.Sorted(maps.Keys(s.Translations)) {
		in, err := translated(s, language)
		if err != nil {
			return nil, rejectf("tool %s: translation %s: %s", shown(s.Name), shown(language), err)
		}
		all[language] = in
	}
	return all, nil
}

func translated(s tool.Spec, language string) (tool.Spec, error) {
	if !languageRE.MatchString(language) {
		return s, fmt.Errorf("not a language such as ru, allowed are 2 or 3 small letters, and - with a region or script in small letters")
	}
	t := s.Translations[language]
	s.Translations = nil
	for _, text := range []struct {
		name, text string
		most       int
		to         *string
	}{{"title", t.Title, maxTitle, &s.Title}, {"description", t.Description, maxDescription, &s.Description}} {
		if err := checkText(text.name, text.text, text.most); err != nil {
			return s, err
		}
		if text.text != "" {
			*text.to = text.text
		}
	}
	return describeParameters(s, t.Parameters)
}

// checkText refuses what [Spec] would cut or clean: whoever translates can do better.
func checkText(name, text string, most int) error {
	switch n := utf8.RuneCountInString(text); {
	case !utf8.ValidString(text):
		return fmt.Errorf("%s: invalid UTF-8", name)
	case n > most:
		return fmt.Errorf("%s: %d characters, at most %d", name, n, most)
	case hasHidden(text):
		return fmt.Errorf("%s: hidden characters, allowed are visible ones, line breaks and tabs", name)
	}
	return nil
}

// describeParameters gives properties of the input schema other descriptions.
func describeParameters(s tool.Spec, texts map[string]string) (tool.Spec, error) {
	if len(texts) == 0 {
		return s, nil
	}
	root, err := rawjson.Parse(s.InputSchema, rawjson.MaxDepth)
	if err != nil {
		return s, fmt.Errorf("inputSchema: %w", err)
	}
	properties := root.Get("properties")
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		property := properties.Get(name)
		if !property.Is(rawjson.Object) {
			return s, fmt.Errorf("parameter %s: the input schema has no such property", shown(name))
		}
		if err := checkText("parameter "+shown(name), texts[name], maxDescription); err != nil {
			return s, err
		}
		properties = properties.Set(name, property.Set("description", rawjson.NewString(texts[name])))
	}
	s.InputSchema = root.Set("properties", properties).Compact()
	return s, nil
}
