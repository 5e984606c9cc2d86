package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

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
		IsError      *bool           `json:"isError"`
	} `json:"want"`
}

// exampleFields is what a call may have, for who wrote something else.
const exampleFields = "tool, arguments and want; in want: text, textContains, structured and isError"

// readExamples reads the calls of a folder in order of their names, and returns
// what is wrong with those that cannot be made. A folder that is not there has
// none.
func readExamples(dir string) (out []example, bad []error, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(files)
	for _, file := range files {
		e := example{file: filepath.Base(file)}
		body, err := readArgumentFile(file)
		if err == nil {
			if err = e.parse(body); err != nil {
				err = fmt.Errorf("%s%s: %w", file, position(body, err), err)
			}
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		out = append(out, e)
	}
	return out, bad, nil
}

func (e *example) parse(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return understandable(err)
	}
	if err := rawjson.Check(body, rawjson.MaxDepth); err != nil {
		return err
	}
	if e.Tool == "" {
		return errors.New("no tool is named")
	}
	w := e.Want
	if w.Text != nil || w.TextContains != nil || w.Structured != nil || w.IsError != nil && *w.IsError {
		return nil
	}
	if w.IsError != nil {
		return errors.New("want is only isError false, which is the default: it would accept any answer")
	}
	return errors.New("want is empty: it would accept any answer")
}

// understandable puts a decoder's error into terms of the file.
func understandable(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty")
	case errors.As(err, &wrong):
		return &commandError{err: fmt.Errorf("%s: found %s, wanted %s", wrong.Field, wrong.Value, kindName(wrong.Type.Kind())), kind: wrong}
	}
	return err
}

func kindName(k reflect.Kind) string {
	if k == reflect.Struct {
		return "object"
	}
	return k.String()
}

// position is where err found something, as ":line:column", or nothing.
func position(body []byte, err error) string {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	at := int64(-1)
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &wrong):
		at = wrong.Offset
	case errors.Is(err, io.ErrUnexpectedEOF):
		at = int64(len(body))
	}
	if at < 0 || at > int64(len(body)) {
		return ""
	}
	before := body[:max(at-1, 0)] // offsets count the byte that is wrong
	line := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf(":%d:%d", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(before[line:])+1)
}

func (e example) run(ctx context.Context, tools *registry.Registry) callReport {
	r := callReport{File: e.file, Tool: e.Tool}
	result, err := tools.Call(ctx, localCaller(""), tool.Call{Name: e.Tool, Arguments: e.Args})
	if err != nil {
		result = tool.WithUsage(tool.Failed(err.Error()), tool.UsageOf(err)) // as a host would see it
	}
	r.Fuel = result.Usage.Fuel
	r.Diff = e.compare(result)
	r.Passed = len(r.Diff) == 0
	return r
}

// compare says what differs, in lines that name what was wanted first.
func (e example) compare(r tool.Result) (diff []string) {
	text := resultText(r)
	if want := e.Want.IsError != nil && *e.Want.IsError; r.IsError != want {
		diff = append(diff, fmt.Sprintf("isError: want %t, found %t", want, r.IsError))
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
