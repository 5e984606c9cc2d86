package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
)

// example is one call with the answer it must get.
type example struct {
	file string
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"arguments"`
	Want struct {
		Text         *string         `json:"text"`
		TextContains *string         `json:"textContains"`
		Structured   json.RawMessage `json:"structured"`
		IsError      bool            `json:"isError"`
	} `json:"want"`
}

// readExamples reads the calls of a folder in order of their names. A folder
// that is not there has none.
func readExamples(dir string) ([]example, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var out []example
	for _, file := range files {
		e := example{file: filepath.Base(file)}
		body, err := readArgumentFile(file)
		if err == nil {
			err = e.parse(body)
		}
		if err != nil {
			return nil, usagef("%s: %w", file, err).withHint("hutch help test")
		}
		out = append(out, e)
	}
	return out, nil
}

func (e *example) parse(body []byte) error {
	if err := rawjson.Check(body, rawjson.MaxDepth); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return err
	}
	if e.Tool == "" {
		return errors.New("no tool is named")
	}
	if w := e.Want; w.Text == nil && w.TextContains == nil && w.Structured == nil && !w.IsError {
		return errors.New("want is empty: it would accept any answer")
	}
	return nil
}

func (e example) run(ctx context.Context, tools *registry.Registry) callReport {
	r := callReport{File: e.file, Tool: e.Tool}
	result, err := tools.Call(ctx, localCaller(""), tool.Call{Name: e.Tool, Arguments: e.Args})
	if err != nil {
		result = tool.Failed(err.Error()) // as a host would see it
	}
	r.Diff = e.compare(result)
	r.Passed = len(r.Diff) == 0
	return r
}

// compare says what differs, in lines that name what was wanted first.
func (e example) compare(r tool.Result) (diff []string) {
	text := resultText(r)
	if r.IsError != e.Want.IsError {
		diff = append(diff, fmt.Sprintf("isError: want %t, found %t", e.Want.IsError, r.IsError))
		if r.IsError {
			diff = append(diff, "error: "+text)
		}
	}
	if want := e.Want.Text; want != nil && text != *want {
		diff = append(diff, textDiff(*want, text)...)
	}
	if want := e.Want.TextContains; want != nil && !strings.Contains(text, *want) {
		diff = append(diff, fmt.Sprintf("text: %q is not in %q", *want, abi.Cut(text, 500)))
	}
	if want := e.Want.Structured; want != nil && !sameJSON(want, r.Structured) {
		diff = append(diff, "structured:", "- "+compactJSON(want), "+ "+compactJSON(r.Structured))
	}
	return diff
}

// textDiff shows the first line that differs, and where.
func textDiff(want, found string) []string {
	w, f := strings.Split(want, "\n"), strings.Split(found, "\n")
	for i := range max(len(w), len(f)) {
		if i < len(w) && i < len(f) && w[i] == f[i] {
			continue
		}
		diff := []string{fmt.Sprintf("text, line %d of %d:", i+1, len(w))}
		if i < len(w) {
			diff = append(diff, fmt.Sprintf("- %q", w[i]))
		}
		if i < len(f) {
			diff = append(diff, fmt.Sprintf("+ %q", f[i]))
		}
		return diff
	}
	return nil
}

// sameJSON compares as JSON: the order of keys and white space do not count,
// the digits of numbers do.
func sameJSON(a, b json.RawMessage) bool {
	x, err := canonicalJSON(a)
	if err != nil {
		return false
	}
	y, err := canonicalJSON(b)
	return err == nil && bytes.Equal(x, y)
}

func canonicalJSON(raw json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v) // sorts keys
}

func compactJSON(raw json.RawMessage) string {
	if raw == nil {
		return "(none)"
	}
	if c, err := canonicalJSON(raw); err == nil {
		return string(c)
	}
	return string(raw)
}
