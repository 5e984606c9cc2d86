package chat

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Decode reads a message as [json.Unmarshal] does. What most of a conversation consists
// of, texts in which nothing is escaped, takes it a fraction of the time: hundreds of
// messages are read when a thread is taken up again.
func Decode(b []byte) (m Message, err error) {
	if m, ok := plainMessage(b); ok {
		return m, nil
	}
	err = json.Unmarshal(b, &m)
	return m, err
}

// plainMessage reads an id, a role and a text, written as [json.Marshal] writes them.
func plainMessage(b []byte) (Message, bool) {
	id, b, ok1 := plainMember(b, `{"id":"`)
	role, b, ok2 := plainMember(b, `,"role":"`)
	text, b, ok3 := plainMember(b, `,"content":"`)
	if !ok1 || !ok2 || !ok3 || len(b) != 1 || b[0] != '}' {
		return Message{}, false
	}
	return Message{ID: id, Role: Role(role), Content: Text(text)}, true
}

// plainMember reads what follows up to a quotation mark, and returns what is behind that.
// Whatever a string of JSON may not have, or has otherwise than it says, is not plain.
func plainMember(b []byte, name string) (value string, rest []byte, ok bool) {
	if len(b) < len(name) || string(b[:len(name)]) != name {
		return "", nil, false
	}
	b = b[len(name):]
	end := bytes.IndexByte(b, '"')
	if end < 0 || !utf8.Valid(b[:end]) || bytes.ContainsFunc(b[:end], func(c rune) bool { return c < ' ' || c == '\\' }) {
		return "", nil, false
	}
	return string(b[:end]), b[end+1:], true
}
