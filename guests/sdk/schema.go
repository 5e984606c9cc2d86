package sdk

import (
	"bytes"
	"encoding/json"
)

// schema is a JSON Schema, in keywords that every known host takes and in the
// order they are written. Any but the zero additionalProperties is a schema, or
// false.
type schema struct {
	Type        any         `json:"type,omitempty"` // a name, or a list of names
	Format      string      `json:"format,omitempty"`
	Description string      `json:"description,omitempty"`
	Enum        []string    `json:"enum,omitempty"`
	Minimum     json.Number `json:"minimum,omitempty"`
	Maximum     json.Number `json:"maximum,omitempty"`
	MinLength   json.Number `json:"minLength,omitempty"`
	MaxLength   json.Number `json:"maxLength,omitempty"`
	MinItems    json.Number `json:"minItems,omitempty"`
	MaxItems    json.Number `json:"maxItems,omitempty"`
	Items       *schema     `json:"items,omitempty"`
	Properties  properties  `json:"properties,omitzero"`
	Required    []string    `json:"required,omitempty"`
	Additional  any         `json:"additionalProperties,omitempty"`
	Default     any         `json:"default,omitempty"`
}

// properties are written in the order of the fields that they stem from.
type properties []property

type property struct {
	name   string
	schema *schema
}

// MarshalJSON writes an object.
func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, property := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		s, err := encode(property.schema)
		if err != nil {
			return nil, err
		}
		b.WriteString(`"` + property.name + `":`) // a validKey
		b.Write(s)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schema returns the JSON Schema of s, described by doc.
func (s *shape) schema(doc string) *schema {
	j := &schema{Type: s.schemaTypes(), Description: doc, Enum: s.enum}
	if isType(s.typ, "time", "Time") {
		j.Format = "date-time"
	}
	s.setBounds(j)
	switch s.kind {
	case list:
		j.Items = s.elem.schema("")
	case dict:
		j.Properties = properties{} // some hosts take no object without them
		if s.elem.kind != anything {
			j.Additional = s.elem.schema("")
		}
	case object:
		j.Properties = properties{}
		j.Additional = false
		for _, f := range s.fields {
			j.addField(f)
		}
	}
	return j
}

// schemaTypes is nil where any type will do.
func (s *shape) schemaTypes() any {
	switch name := s.kind.schemaType(); {
	case s.kind == reference:
		return []string{name, integer.schemaType()}
	case name != "":
		return name
	}
	return nil
}

func (s *shape) setBounds(j *schema) {
	low, high := s.min.text(), s.max.text()
	if s.kind == unsigned && low == "" {
		low = "0"
	}
	switch s.kind {
	case text, reference:
		j.MinLength, j.MaxLength = low, high
	case list:
		j.MinItems, j.MaxItems = low, high
	default:
		j.Minimum, j.Maximum = low, high
	}
}

func (j *schema) addField(f field) {
	p := f.shape.schema(f.doc)
	p.Default = f.def
	j.Properties = append(j.Properties, property{f.name, p})
	if !f.optional {
		j.Required = append(j.Required, f.name)
	}
}
