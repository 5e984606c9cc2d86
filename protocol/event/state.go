package event

import (
	"encoding/json"
	"strings"
)

// StateSnapshot replaces the state that an agent shares with its client.
type StateSnapshot struct {
	Snapshot json.RawMessage `json:"snapshot" is:"required,null"`
	Owned
}

// StateDelta changes the state.
type StateDelta struct {
	Delta []Patch `json:"delta" is:"required"`
	Owned
}

// ActivitySnapshot is what goes on besides the conversation.
type ActivitySnapshot struct {
	MessageID    string          `json:"messageId" is:"id"`
	ActivityType string          `json:"activityType" is:"required"`
	Content      json.RawMessage `json:"content" is:"required,object"`
	Replace      *bool           `json:"replace,omitempty"` // nil is true
	Owned
}

// ActivityDelta changes it.
type ActivityDelta struct {
	MessageID    string  `json:"messageId" is:"id"`
	ActivityType string  `json:"activityType" is:"required"`
	Patch        []Patch `json:"patch" is:"required"`
	Owned
}

// Raw is an event of another system.
type Raw struct {
	Event  json.RawMessage `json:"event" is:"required,null"`
	Source string          `json:"source,omitempty"`
	Owned
}

// Custom is an event that AG-UI has no word for.
type Custom struct {
	Name  string          `json:"name" is:"required"`
	Value json.RawMessage `json:"value" is:"required,null"`
	Owned
}

// Patch is one operation of a JSON Patch (RFC 6902).
type Patch struct {
	Op   string `json:"op" is:"required,one=add|remove|replace|move|copy|test"`
	Path string `json:"path" is:"required"` // a JSON Pointer (RFC 6901); "" is the whole
	// From is of move and copy.
	From string `json:"from,omitempty"`
	// Value is of add, replace and test.
	Value json.RawMessage `json:"value,omitempty" is:"null"`
}

func (p Patch) hasValue() bool { return p.Op == "add" || p.Op == "replace" || p.Op == "test" }
func (p Patch) hasFrom() bool  { return p.Op == "move" || p.Op == "copy" }

func (p Patch) fault() *FieldError {
	const pointer = `a JSON Pointer: "", or steps that each begin with /, in which ~ is written ~0 and / ~1`
	switch {
	case !isPointer(p.Path):
		return &FieldError{Field: "path", Found: shown(p.Path), Allowed: pointer}
	case p.hasFrom() && !isPointer(p.From):
		return &FieldError{Field: "from", Found: shown(p.From), Allowed: pointer}
	case p.hasValue() && len(p.Value) == 0:
		return &FieldError{Field: "value", Found: nothing, Allowed: "any JSON, null included"}
	}
	return nil
}

// wants are the members that only some operations need.
func (p Patch) wants() string {
	if p.hasFrom() {
		return "from"
	}
	return ""
}

// isPointer reports whether s is a JSON Pointer (RFC 6901, section 3).
func isPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for {
		_, after, found := strings.Cut(s, "~")
		if !found {
			return true
		}
		if after == "" || after[0] != '0' && after[0] != '1' {
			return false
		}
		s = after
	}
}

// MarshalJSON writes the members that the operation has.
func (p Patch) MarshalJSON() ([]byte, error) {
	out := map[string]any{"op": p.Op, "path": p.Path}
	switch {
	case p.hasValue():
		out["value"] = p.Value
	case p.hasFrom():
		out["from"] = p.From
	}
	return json.Marshal(out)
}

// Type is STATE_SNAPSHOT.
func (StateSnapshot) Type() Type { return TypeStateSnapshot }

// Type is STATE_DELTA.
func (StateDelta) Type() Type { return TypeStateDelta }

// Type is ACTIVITY_SNAPSHOT.
func (ActivitySnapshot) Type() Type { return TypeActivitySnapshot }

// Type is ACTIVITY_DELTA.
func (ActivityDelta) Type() Type { return TypeActivityDelta }

// Type is RAW.
func (Raw) Type() Type { return TypeRaw }

// Type is CUSTOM.
func (Custom) Type() Type { return TypeCustom }
