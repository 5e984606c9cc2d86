package tool

import "strconv"

// A position says where a keyword of JSON Schema keeps sub-schemas.
type position int

const (
	noSchema     position = iota
	inPlace               // the value is a schema
	inPlaceOrNot          // the same, and true and false are as common as objects
	inList                // a list of schemas
	inObject              // an object of schemas
)

// positions holds the keywords of every draft since 4.
var positions = map[string]position{
	"additionalItems":       inPlaceOrNot,
	"additionalProperties":  inPlaceOrNot,
	"unevaluatedItems":      inPlaceOrNot,
	"unevaluatedProperties": inPlaceOrNot,
	"contains":              inPlace,
	"contentSchema":         inPlace,
	"else":                  inPlace,
	"if":                    inPlace,
	"items":                 inPlace, // or a list, up to draft 2019-09
	"not":                   inPlace,
	"propertyNames":         inPlace,
	"then":                  inPlace,
	"allOf":                 inList,
	"anyOf":                 inList,
	"oneOf":                 inList,
	"prefixItems":           inList,
	"$defs":                 inObject,
	"definitions":           inObject,
	"dependencies":          inObject, // some values are lists of names
	"dependentSchemas":      inObject,
	"patternProperties":     inObject,
	"properties":            inObject,
}

// A visit gets a sub-schema and where it stands, and returns what to put there.
type visit func(where string, sub *node) (*node, error)

// mapSchemas returns a copy of the schema n with each direct sub-schema
// replaced. What stands where no schema can is left as it is.
func (n *node) mapSchemas(where string, f visit) (*node, error) {
	if !n.is(kindObject) {
		return n, nil
	}
	out := &node{kind: kindObject, members: make([]member, len(n.members))}
	for i, m := range n.members {
		value, err := mapKeyword(where+"."+shownKey(m.name), m, f)
		if err != nil {
			return nil, err
		}
		m.value = value
		out.members[i] = m
	}
	return out, nil
}

func mapKeyword(where string, m member, f visit) (*node, error) {
	switch p := positions[m.name]; {
	case p == inPlaceOrNot && m.value.is(kindBool):
		return m.value, nil
	case (p == inList || m.name == "items") && m.value.is(kindArray):
		return mapItems(where, m.value, f)
	case p == inPlace || p == inPlaceOrNot:
		return f(where, m.value)
	case p == inObject && m.value.is(kindObject):
		return mapMembers(where, m, f)
	}
	return m.value, nil
}

func mapItems(where string, list *node, f visit) (*node, error) {
	out := &node{kind: kindArray, items: make([]*node, len(list.items))}
	for i, item := range list.items {
		sub, err := f(where+"["+strconv.Itoa(i)+"]", item)
		if err != nil {
			return nil, err
		}
		out.items[i] = sub
	}
	return out, nil
}

func mapMembers(where string, m member, f visit) (*node, error) {
	out := &node{kind: kindObject, members: make([]member, len(m.value.members))}
	for i, entry := range m.value.members {
		if m.name != "dependencies" || !entry.value.is(kindArray) {
			sub, err := f(where+"."+shownKey(entry.name), entry.value)
			if err != nil {
				return nil, err
			}
			entry.value = sub
		}
		out.members[i] = entry
	}
	return out, nil
}
