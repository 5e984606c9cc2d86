package gate

import (
	"bytes"
	"encoding/binary"
	"maps"
	"mime"
	"strings"
	"unicode/utf16"

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
	if order == nil || len(a.Body)%2 != 0 {
		return a
	}
	units := make([]uint16, 0, len(a.Body)/2)
	for at := 0; at < len(a.Body); at += 2 {
		units = append(units, order.Uint16(a.Body[at:]))
	}
	a.Body = bytes.TrimPrefix([]byte(string(utf16.Decode(units))), []byte("\ufeff"))
	a.Header = maps.Clone(a.Header)
	delete(a.Header, "Content-Length")
	if media, params, err := mime.ParseMediaType(kind); err == nil && params["charset"] != "" {
		params["charset"] = "utf-8"
		a.Header["Content-Type"] = []string{mime.FormatMediaType(media, params)}
	}
	return a
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
