package access

import (
	"errors"
	"net/http"
	"strings"
)

// maxHeader is the longest Authorization header that is looked at, in bytes.
const maxHeader = 256

var (
	errNone  = errors.New("none")
	errTwice = errors.New("twice")
)

// bearer returns what a request brings in its Authorization header (RFC 6750, 2.1). One in
// its address or its body is not looked at: both are written down in too many places.
func bearer(h http.Header) (text string, err error) {
	values := h.Values("Authorization")
	switch {
	case len(values) == 0:
		return "", errNone
	case len(values) > 1:
		return "", errTwice
	case len(values[0]) > maxHeader:
		return "", errMalformed
	}
	scheme, text, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", errNone
	}
	if text = strings.TrimLeft(text, " "); text == "" || !isToken68(text) {
		return "", errMalformed
	}
	return text, nil
}

// isToken68 reports whether text is one word as such headers have it (RFC 9110, 11.2).
func isToken68(text string) bool {
	text = strings.TrimRight(text, "=")
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-._~+/", r)
	})
}

// takeOff removes what a request came in with: nothing behind the door can forward it.
func takeOff(h http.Header) {
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie"} {
		h.Del(name)
	}
}

// A challenge is a WWW-Authenticate header (RFC 6750, 3; RFC 9728, 5.1). Its parts are
// names of ours, and addresses that were checked: none has a quote in it.
type challenge struct {
	code, description, scope, metadata string
}

func (c challenge) String() string {
	var b strings.Builder
	b.WriteString(`Bearer realm="hutch"`)
	for _, p := range []struct{ name, value string }{
		{"error", c.code}, {"error_description", c.description}, {"scope", c.scope}, {"resource_metadata", c.metadata},
	} {
		if p.value != "" {
			b.WriteString(`, ` + p.name + `="` + p.value + `"`)
		}
	}
	return b.String()
}
