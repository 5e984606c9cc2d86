package main

import (
	"encoding/json"
	"strconv"
	"strings"
)

// rowObject writes the object by hand, since a map would lose the order.
func rowObject(columns, row []string, infer bool) json.RawMessage {
	b := []byte{'{'}
	for i, name := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, jsonString(name)...), ':')
		b = append(b, cell(row[i], infer)...)
	}
	return append(b, '}')
}

func cell(value string, infer bool) string {
	switch {
	case !infer:
	case value == "":
		return "null"
	case value == "true", value == "false", isNumber(value):
		return value
	}
	return jsonString(value)
}

// isNumber accepts what is a number in JSON as it stands: neither 007 nor 0x1F.
func isNumber(value string) bool {
	_, err := strconv.ParseFloat(value, 64)
	return err == nil && json.Valid([]byte(value))
}

func jsonString(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // no string fails
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// cellText is the string itself, nothing for null, and else the JSON as it is.
func cellText(value json.RawMessage) (string, error) {
	switch value[0] {
	case 'n':
		return "", nil
	case '"':
		var s string
		err := json.Unmarshal(value, &s)
		return s, err
	}
	return string(value), nil
}
