package gate

import (
	"bytes"
	"encoding/binary"
	"maps"
	"mime"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hutch-run/hutch/host/fetch"
)

// readable returns an answer with a body in UTF-8 if that is text in UTF-16: the
// escapes in it would not be looked through otherwise.
func readable(a fetch.Response) fetch.Response {
	kind := ""
	if values := a.Header["Content-Type"]; len(values) > 0 {
		kind = values[0]
	}
	order := utf16Order(kind, a.Body)
	if order == nil {
		return a
	}
	a.Body = bytes.TrimPrefix(fromUTF16(a.Body, order), []byte("\ufeff"))
	a.Header = maps.Clone(a.Header)
	delete(a.Header, "Content-Length")
	if media, params, err := mime.ParseMediaType(kind); err == nil && params["charset"] != "" {
		params["charset"] = "utf-8"
		a.Header["Content-Type"] = []string{mime.FormatMediaType(media, params)}
	}
	return a
}

func fromUTF16(text []byte, order binary.ByteOrder) []byte {
	plain := make([]byte, 0, len(text))
	for at := 0; at+1 < len(text); at += 2 {
		r := rune(order.Uint16(text[at:]))
		if utf16.IsSurrogate(r) && at+3 < len(text) {
			if whole := utf16.DecodeRune(r, rune(order.Uint16(text[at+2:]))); whole != utf8.RuneError {
				r, at = whole, at+2
			}
		}
		plain = utf8.AppendRune(plain, r) // which makes U+FFFD of half a pair
	}
	return plain
}

// utf16Order returns the order of bytes of a text in UTF-16, as its charset or its
// first character says; nil if neither does.
func utf16Order(kind string, body []byte) binary.ByteOrder {
	media, params, err := mime.ParseMediaType(kind)
	charset := strings.ToLower(params["charset"])
	textual := err != nil || strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "json") || strings.HasSuffix(media, "xml") ||
		strings.HasPrefix(charset, "utf-16")
	switch {
	case textual && bytes.HasPrefix(body, []byte{0xff, 0xfe}):
		return binary.LittleEndian
	case textual && bytes.HasPrefix(body, []byte{0xfe, 0xff}):
		return binary.BigEndian
	case charset == "utf-16le":
		return binary.LittleEndian
	case charset == "utf-16be" || charset == "utf-16":
		return binary.BigEndian
	}
	return nil
}
