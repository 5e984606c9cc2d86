package portable

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

const (
	// maxAliased is how many parameters of a tool may have aliases.
	maxAliased = 32
	// maxAliases is how many one parameter may have.
	maxAliases = 64
	// maxAlias is in characters.
	maxAlias = 64
)

// Aliases resolves other spellings of the values of a tool's parameters.
type Aliases struct {
	values map[string]map[string]string // by parameter and folded spelling
}

// AliasesOf checks the aliases that a tool's definition has; nil if it has none. Each
// parameter is a property of the input schema that is a string, or a list of strings, with
// an enum of strings; each alias stands for a value of it, and is a spelling of no other.
func AliasesOf(s tool.Spec) (*Aliases, error) {
	if len(s.Aliases) == 0 {
		return nil, nil
	}
	fail := func(format string, args ...any) (*Aliases, error) {
		return nil, rejectf("tool %s: aliases%s", shown(s.Name), fmt.Sprintf(format, args...))
	}
	if n := len(s.Aliases); n > maxAliased {
		return fail(": of %d parameters, at most %d", n, maxAliased)
	}
	root, err := rawjson.Parse(s.InputSchema, rawjson.MaxDepth)
	if err != nil {
		return fail(": inputSchema: %s", err)
	}
	a := &Aliases{values: map[string]map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(s.Aliases)) {
		enum := enumOf(root.Get("properties").Get(name))
		if enum == nil {
			return fail(" of %s: allowed for a string, or a list of strings, that has an enum of strings", shown(name))
		}
		if a.values[name], err = spellings(enum, s.Aliases[name]); err != nil {
			return fail(" of %s: %s", shown(name), err)
		}
	}
	return a, nil
}

// enumOf returns the values of a property, nil unless they are strings.
func enumOf(property *rawjson.Node) (values []string) {
	if property.Get("type").Str() == string(rawjson.Array) {
		property = property.Get("items")
	}
	enum := property.Get("enum")
	if property.Get("type").Str() != string(rawjson.String) || !enum.Is(rawjson.Array) {
		return nil
	}
	for _, value := range enum.Items {
		if !value.Is(rawjson.String) {
			return nil
		}
		values = append(values, value.Str())
	}
	return values
}

// spellings maps each folded spelling of a value to the value.
func spellings(enum []string, aliases map[string]string) (map[string]string, error) {
	if n := len(aliases); n == 0 || n > maxAliases {
		return nil, fmt.Errorf("%d, allowed are 1 to %d", n, maxAliases)
	}
	known := map[string]string{}
	for _, value := range enum {
		if other, taken := known[fold(value)]; taken {
			return nil, fmt.Errorf("the values %s and %s are two spellings of one", shown(other), shown(value))
		}
		known[fold(value)] = value
	}
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		value := aliases[alias]
		switch n := utf8.RuneCountInString(alias); {
		case n == 0 || n > maxAlias || !utf8.ValidString(alias):
			return nil, fmt.Errorf("%s has %d characters, allowed are 1 to %d", shown(alias), n, maxAlias)
		case hasHidden(alias):
			return nil, fmt.Errorf("%s has hidden characters", shown(alias))
		case !slices.Contains(enum, value):
			return nil, fmt.Errorf("%s stands for %s, which is no value of the enum", shown(alias), shown(value))
		}
		if other, taken := known[fold(alias)]; taken {
			return nil, fmt.Errorf("%s is a spelling of %s already", shown(alias), shown(other))
		}
		known[fold(alias)] = value
	}
	return known, nil
}

// fold takes away what spellings of one word differ in: case, and - or a space for _.
func fold(text string) string {
	return strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(text))
}

// Resolve returns arguments, which must be a JSON object, with the values in place of their
// other spellings. Where there are none they come back as they are, byte for byte.
func (a *Aliases) Resolve(args json.RawMessage) json.RawMessage {
	if a == nil {
		return args
	}
	root, err := rawjson.Parse(args, rawjson.MaxDepth)
	if err != nil {
		return args
	}
	resolved := root
	for _, name := range slices.Sorted(maps.Keys(a.values)) {
		was := root.Get(name)
		if now := resolve(a.values[name], was); now != was {
			resolved = resolved.Set(name, now)
		}
	}
	if resolved == root {
		return args
	}
	return resolved.Compact()
}

// resolve returns n itself where there is nothing to resolve.
func resolve(known map[string]string, n *rawjson.Node) *rawjson.Node {
	switch {
	case n.Is(rawjson.String):
		if value, ok := known[fold(n.Str())]; ok && value != n.Str() {
			return rawjson.NewString(value)
		}
	case n.Is(rawjson.Array):
		list := &rawjson.Node{Kind: rawjson.Array, Items: slices.Clone(n.Items)}
		changed := false
		for i, item := range n.Items {
			if item.Is(rawjson.String) {
				list.Items[i] = resolve(known, item)
				changed = changed || list.Items[i] != item
			}
		}
		if changed {
			return list
		}
	}
	return n
}
