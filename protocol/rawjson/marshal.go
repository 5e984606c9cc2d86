package rawjson

import (
	"bytes"
	"encoding/json"
)

// Marshal is [json.Marshal] that leaves <, > and & alone, so that what is nested stays byte
// for byte as it was.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
