package main

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// fromText returns the bytes that data stands for in a form, or says which
// form it may be instead.
func fromText(data, form string) ([]byte, error) {
	if form == "text" {
		return []byte(data), nil
	}
	if form == "url" {
		text, err := url.PathUnescape(data)
		if err != nil {
			return nil, fmt.Errorf("this is no percent-encoding: %w", err)
		}
		return []byte(text), nil
	}
	compact := strings.TrimRight(strings.Map(dropSpace, data), "=")
	decoded, err := decoders[form](compact)
	if err != nil {
		return nil, fmt.Errorf("this is no %s: %w%s", form, err, hint(compact, form))
	}
	return decoded, nil
}

var decoders = map[string]func(string) ([]byte, error){
	"base64":    base64.RawStdEncoding.DecodeString,
	"base64url": base64.RawURLEncoding.DecodeString,
	"base32": func(s string) ([]byte, error) {
		return base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(s))
	},
	"hex": hex.DecodeString,
}

func dropSpace(r rune) rune {
	if unicode.IsSpace(r) {
		return -1
	}
	return r
}

// hint names another form that the data would be.
func hint(data, form string) string {
	for _, other := range []string{"hex", "base64", "base64url"} {
		if _, err := decoders[other](data); err == nil && other != form {
			return "; it would be " + other
		}
	}
	return ""
}
