package portable

import (
	"strconv"

	"github.com/hutch-run/hutch/protocol/rawjson"
)

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
type visit func(where string, sub *rawjson.Node) (*rawjson.Node, error)

// mapSchemas returns a copy of the schema n with each direct sub-schema
// replaced. What stands where no schema can is left as it is.
func mapSchemas(n *rawjson.Node, where string, f visit) (*rawjson.Node, error) {
	if !n.Is(rawjson.Object) {
		return n, nil
	}
	out := &rawjson.Node{Kind: rawjson.Object, Members: make([]rawjson.Member, len(n.Members))}
	for i, m := range n.Members {
		value, err := mapKeyword(where+"."+rawjson.PathStep(m.Name), m, f)
		if err != nil {
			return nil, err
		}
		m.Value = value
		out.Members[i] = m
	}
	return out, nil
}

func mapKeyword(where string, m rawjson.Member, f visit) (*rawjson.Node, error) {
	switch p := positions[m.Name]; {
	case p == inPlaceOrNot && m.Value.Is(rawjson.Bool):
		return m.Value, nil
	case (p == inList || m.Name == "items") && m.Value.Is(rawjson.Array):
		return mapItems(where, m.Value, f)
	case p == inPlace || p == inPlaceOrNot:
		return f(where, m.Value)
	case p == inObject && m.Value.Is(rawjson.Object):
		return mapMembers(where, m, f)
	}
	return m.Value, nil
}

func mapItems(where string, list *rawjson.Node, f visit) (*rawjson.Node, error) {
	out := &rawjson.Node{Kind: rawjson.Array, Items: make([]*rawjson.Node, len(list.Items))}
	for i, item := range list.Items {
		sub, err := f(where+"["+strconv.Itoa(i)+"]", item)
		if err != nil {
			return nil, err
		}
		out.Items[i] = sub
	}
	return out, nil
}

func mapMembers(where string, m rawjson.Member, f visit) (*rawjson.Node, error) {
	out := &rawjson.Node{Kind: rawjson.Object, Members: make([]rawjson.Member, len(m.Value.Members))}
	for i, entry := range m.Value.Members {
		if m.Name != "dependencies" || !entry.Value.Is(rawjson.Array) {
			sub, err := f(where+"."+rawjson.PathStep(entry.Name), entry.Value)
			if err != nil {
				return nil, err
			}
			entry.Value = sub
		}
		out.Members[i] = entry
	}
	return out, nil
}
