// Package text is the work on text that is measured, in Go: as a guest, and as
// native code. Every function does a fixed amount of work and reports whether the
// result is the right one. It stands apart from package compute because
// encoding/json is most of a guest that has it.
package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

const (
	records   = 100
	wantTotal = 4950 // 0 to 99, added
	lines     = 200
	wantMails = 67 // every third line has one
)

type record struct {
	ID    int       `json:"id"`
	Name  string    `json:"name"`
	Tags  []string  `json:"tags"`
	Point []float64 `json:"point"`
	Open  bool      `json:"open"`
}

var (
	// document and prose are made once, before anything is timed.
	document = makeDocument()
	prose    = makeProse()
	mail     = regexp.MustCompile(`[a-z0-9.]+@[a-z0-9]+\.(org|com)`)
	small    = []byte(`{"name":"weather","n":42,"tags":["a","b"],"x":{"city":"Berlin","k":1.5}}`)
)

func makeDocument() []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i := range records {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"record number %d","tags":["red","green","blue"],"point":[%d.5,%d.25],"open":%t}`, i, i, i, i*2, i%2 == 0)
	}
	b.WriteByte(']')
	return b.Bytes()
}

func makeProse() string {
	var b strings.Builder
	for i := range lines {
		if i%3 == 0 {
			fmt.Fprintf(&b, "line %d was written by user.%d@example.org last week\n", i, i)
		} else {
			fmt.Fprintf(&b, "line %d has nobody to write to, only some words\n", i)
		}
	}
	return b.String()
}

// JSON decodes a hundred records, adds up a field and encodes them again.
func JSON() bool {
	var all []record
	if json.Unmarshal(document, &all) != nil {
		return false
	}
	total := 0
	for _, r := range all {
		total += r.ID
	}
	out, err := json.Marshal(all)
	return err == nil && total == wantTotal && len(out) == len(document)
}

// Regexp finds the addresses in two hundred lines.
func Regexp() bool { return len(mail.FindAllStringIndex(prose, -1)) == wantMails }

// Echo is the trivial call: it decodes 72 bytes and encodes them again.
func Echo() bool {
	var in struct {
		Name string         `json:"name"`
		N    int            `json:"n"`
		Tags []string       `json:"tags"`
		X    map[string]any `json:"x"`
	}
	if json.Unmarshal(small, &in) != nil {
		return false
	}
	out, err := json.Marshal(map[string]any{"echo": in})
	return err == nil && len(out) == len(`{"echo":}`)+len(small)
}
