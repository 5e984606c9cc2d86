package sdk

import "strconv"

// schema returns the JSON Schema of s, compact, members in a fixed order.
func (s *shape) schema() []byte { return s.appendSchema(nil, "") }

// appendSchema keeps to keywords that every known host takes.
func (s *shape) appendSchema(b []byte, doc string) []byte {
	b = append(b, '{')
	if t := s.kind.schemaType(); t != "" {
		b = appendString(appendKey(b, "type"), t)
	}
	if isType(s.typ, "time", "Time") {
		b = append(appendKey(b, "format"), `"date-time"`...)
	}
	if doc != "" {
		b = appendString(appendKey(b, "description"), doc)
	}
	if s.enum != nil {
		b = appendStrings(appendKey(b, "enum"), s.enum)
	}
	b = s.appendBounds(b)
	switch s.kind {
	case list:
		b = s.elem.appendSchema(appendKey(b, "items"), "")
	case dict:
		b = s.appendDict(b)
	case object:
		b = s.appendObject(b)
	}
	return append(b, '}')
}

func (s *shape) appendBounds(b []byte) []byte {
	names := boundNames[s.kind]
	switch {
	case s.min != nil:
		b = append(appendKey(b, names[0]), s.min.text...)
	case s.kind == unsigned:
		b = append(appendKey(b, names[0]), '0')
	}
	if s.max != nil {
		b = append(appendKey(b, names[1]), s.max.text...)
	}
	return b
}

// appendDict writes properties too: some hosts take no object without them.
func (s *shape) appendDict(b []byte) []byte {
	b = append(appendKey(b, "properties"), "{}"...)
	if s.elem.kind == anything {
		return b
	}
	return s.elem.appendSchema(appendKey(b, "additionalProperties"), "")
}

func (s *shape) appendObject(b []byte) []byte {
	b = append(appendKey(b, "properties"), '{')
	var required []string
	for _, f := range s.fields {
		b = f.appendSchema(appendKey(b, f.name))
		if !f.optional {
			required = append(required, f.name)
		}
	}
	b = append(b, '}')
	if required != nil {
		b = appendStrings(appendKey(b, "required"), required)
	}
	return append(appendKey(b, "additionalProperties"), "false"...)
}

func (f field) appendSchema(b []byte) []byte {
	b = f.shape.appendSchema(b, f.doc)
	if f.def == nil {
		return b
	}
	b = appendKey(b[:len(b)-1], "default") // reopen the object
	return append(append(b, f.def...), '}')
}

// appendKey writes a member's name, with a comma unless it is the first.
func appendKey(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(strconv.AppendQuote(b, name), ':')
}

func appendStrings(b []byte, values []string) []byte {
	b = append(b, '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, v)
	}
	return append(b, ']')
}
