package secrets

import (
	"fmt"
	"io"
	"log/slog"
)

// Value is a secret that shows itself to whoever calls [Value.Reveal], and to no
// printer: fmt with any verb, slog, encoding/json and a panic write [secret:NAME].
// The zero value is an empty text without a name. Values cannot be compared.
type Value struct {
	// reveal is a function because everything else can be printed: with a verb
	// that does not fit, fmt goes around Format and prints the fields of a struct,
	// and printers that use reflection follow pointers.
	reveal func() (name, text string)
}

// Hide makes a Value.
func Hide(name, text string) Value {
	return Value{func() (string, string) { return name, text }}
}

// Reveal returns the text.
func (v Value) Reveal() string {
	_, text := v.both()
	return text
}

// Name returns what the secret is called.
func (v Value) Name() string {
	name, _ := v.both()
	return name
}

func (v Value) both() (name, text string) {
	if v.reveal == nil {
		return "", ""
	}
	return v.reveal()
}

func (v Value) named(name string) Value { return Hide(name, v.Reveal()) }

// String returns what stands for the value.
func (v Value) String() string {
	if v.Name() == "" {
		return "[secret]"
	}
	return "[secret:" + v.Name() + "]"
}

// GoString implements [fmt.GoStringer].
func (v Value) GoString() string { return v.String() }

// Format implements [fmt.Formatter] for all verbs.
func (v Value) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, v.String()) // a fmt.State has no way to take an error
}

// LogValue implements [slog.LogValuer].
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MarshalText implements [encoding.TextMarshaler], and so JSON and XML.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
