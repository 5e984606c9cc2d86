package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
)

// exchanged is one request for a URL and what it was answered.
func exchanged(url, body string) gate.Exchange {
	answer, err := json.Marshal(abi.HTTPResponse{Status: 200, URL: url, Body: body})
	if err != nil {
		panic(err)
	}
	return gate.Exchange{Op: abi.OpHTTP, Request: json.RawMessage(fmt.Sprintf(`{"url":%q}`, url)), Answer: answer}
}

func noSecrets(t *testing.T) *secrets.Redactor {
	t.Helper()
	vault, err := secrets.Open(secrets.Options{})
	must(t, err)
	return vault.Redactor()
}

// A recording reads back as it was, and only what is one is read.
func TestRecordingsReadBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answers", "a.json")
	r := recording{Config: map[string]string{"a": "<b>"}, Values: []abi.KVSet{}, Exchanges: []gate.Exchange{exchanged("https://example.org/?a=b&c", "<p>")}}
	must(t, r.write(file, noSecrets(t)))
	got, err := readRecording(file)
	must(t, err)
	again, err := got.text(noSecrets(t))
	must(t, err)
	body, err := os.ReadFile(file)
	must(t, err)
	if string(again) != string(body) || got.Values == nil || !strings.Contains(string(body), "a=b&c") {
		t.Errorf("got\n%s\nwant\n%s", again, body)
	}
	for text, want := range map[string]string{
		`{"exchanges":[{"op":"http_request","request":{}}]}`:                      "exchange 1: request and answer must be there",
		`{"exchanges":[{"op":"http_request","request":{},"answer":{},"code":6}]}`: "exchange 1: code 6, allowed are 0 to 5",
		`{"exchanges":[{"op":"config_get","request":"a","answer":"b"}]}`:          `exchange 1: no operation "config_get"`,
		`{"config":{"a":1}}`:                ":1:16: config: found number, wanted string",
		`{"config":{"a":"1","a":"2"}}`:      "a",
		`{`:                                 "a.json\":1:1: unexpected EOF",
		``:                                  "the file is empty",
		`{"values":[{"keys":"a"}]}`:         "unknown field",
		strings.Repeat(" ", maxRecording+1): "larger than 4MiB",
	} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := readRecording(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
	}
}

// What is kept is not more than lies well beside sources.
func TestRecordingsAreBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	err := recording{Exchanges: []gate.Exchange{exchanged("https://example.org", strings.Repeat("a", maxRecording))}}.write(file, noSecrets(t))
	if err == nil || !strings.Contains(err.Error(), "at most 4MiB are kept: have the tool ask for less") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it was written")
	}
}

// Only what can be played again is kept: no refusal of the moment, and values as
// they were and not as what was done to them.
func TestTapesKeepWhatCanBePlayed(t *testing.T) {
	k := &tape{}
	with := func(op abi.Op, code abi.Code) {
		k.keep(gate.Exchange{Op: op, Request: json.RawMessage(`{"b":1, "a":2}`), Code: code, Answer: abi.Refuse(code, "why "+string(op)).Body})
	}
	for code := abi.OK; code <= abi.Cancelled; code++ {
		with(abi.OpHTTP, code)
	}
	with(abi.OpKVSet, abi.OK)
	with(abi.OpKVGet, abi.Denied)
	r, refused := k.recording()
	var codes []abi.Code
	for _, e := range r.Exchanges {
		codes = append(codes, e.Code)
		if string(e.Request) != `{"a":2,"b":1}` {
			t.Errorf("kept %s", e.Request)
		}
	}
	if want := []abi.Code{abi.OK, abi.Invalid, abi.Limit}; !reflect.DeepEqual(codes, want) {
		t.Errorf("kept %v, want %v", codes, want)
	}
	if want := []string{"why http_request", "why http_request", "why http_request", "why kv_get"}; !reflect.DeepEqual(refused, want) {
		t.Errorf("refused %q, want %q", refused, want)
	}
}

// A storage for a trial starts with what it is told, bytes among it, however much.
func TestScratchHoldsWhatItIsTold(t *testing.T) {
	s, err := openScratch(t.Context(), "a.wasm")
	must(t, err)
	defer func() {
		must(t, s.Close())
		if _, err := os.Stat(s.dir); err == nil {
			t.Error("it is still there")
		}
	}()
	must(t, s.set(t.Context(), []abi.KVSet{{Key: "old", Value: "x"}}))
	never := int64(7)
	want := []abi.KVSet{}
	for i := range abi.KVMaxKeys + 1 {
		want = append(want, abi.KVSet{Key: fmt.Sprintf("k/%05d", i), Value: "v"})
	}
	want = append(want, abi.KVSet{Key: "last", Value: "/w==", Base64: true})
	given := append([]abi.KVSet{}, want...)
	given[0].IfVersion = &never
	must(t, s.set(t.Context(), given))
	got, err := s.contents(t.Context())
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d values, want %d; the last %+v", len(got), len(want), got[len(got)-1])
	}
	if err := s.set(t.Context(), []abi.KVSet{{Key: "../a", Value: "x"}}); err == nil || !strings.Contains(err.Error(), `value "../a": `) {
		t.Errorf("a bad key: %v", err)
	}
}

// However much a tool asks for, what is said of it stays readable.
func TestObservedIsBounded(t *testing.T) {
	out := observed{Module: "a.wasm", Tool: "a", Error: strings.Repeat("e", 10_000)}
	for i := range 1000 {
		out.Attempts = append(out.Attempts, attempt{Op: abi.OpHTTP, About: fmt.Sprintf("GET https://h%d.example.org/", i)})
		out.note("note %d", i)
		out.note("note %d", i)
	}
	text := out.comments()
	if lines := strings.Count(text, "\n"); lines != 1+100+1+1+20 || !strings.Contains(text, "\n#   and 900 more\n") || len(text) > 20_000 {
		t.Errorf("%d lines, %d bytes:\n%s", lines, len(text), text)
	}
}
