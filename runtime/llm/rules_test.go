package llm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
)

// How long to wait is a number of seconds, or a time; what is neither says nothing, and
// nobody is waited for longer than a minute.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for said, want := range map[string]time.Duration{
		"": 0, "2": 2 * time.Second, "0.5": 500 * time.Millisecond, "-2": 0, "NaN": 0, "+Inf": mostWait, "1e300": mostWait, "soon": 0,
		"Mon, 30 Nov 2026 12:00:10 GMT": 10 * time.Second, "Mon, 30 Nov 2026 11:00:00 GMT": 0, "Mon, 30 Nov 2026 13:00:00 GMT": mostWait,
	} {
		if got := retryAfter(http.Header{"Retry-After": {said}}, now); got != want {
			t.Errorf("%q: %v, want %v", said, got, want)
		}
	}
}

// A media part goes out only in the form that the provider takes for its kind; an address
// is one of the web.
func TestMediaParts(t *testing.T) {
	data := func(kind, value string) *chat.Source { return &chat.Source{Type: "data", MimeType: kind, Value: value} }
	address := func(url string) *chat.Source { return &chat.Source{Type: "url", MimeType: "image/png", Value: url} }
	for _, tt := range []struct {
		part chat.Part
		ok   bool
	}{
		{chat.Part{Type: "image", Source: data("image/png", "AA")}, true},
		{chat.Part{Type: "image", Source: address("https://example.org/x")}, true},
		{chat.Part{Type: "image", Source: address("http://example.org/x")}, true},
		{chat.Part{Type: "image", Source: address("ftp://example.org/x")}, false},
		{chat.Part{Type: "image", Source: address("gopher://example.org/x")}, false},
		{chat.Part{Type: "image", Source: address("https:///x")}, false},
		{chat.Part{Type: "image", Source: address("https://a:b@example.org/x")}, false},
		{chat.Part{Type: "image", Source: address("https://exa mple.org/x")}, false},
		{chat.Part{Type: "image", Source: &chat.Source{Type: "file", MimeType: "image/png", Value: "https://example.org/x"}}, false},
		{chat.Part{Type: "video", Source: data("image/png", "AA")}, false},
		{chat.Part{Type: "video", Source: address("https://example.org/x")}, false},
		{chat.Part{Type: "audio", Source: data("audio/mpeg", "AA")}, true},
		{chat.Part{Type: "audio", Source: &chat.Source{Type: "url", MimeType: "audio/mpeg", Value: "https://example.org/x"}}, false},
		{chat.Part{Type: "document", Source: data("application/pdf", "AA")}, true},
		{chat.Part{Type: "document", Source: &chat.Source{Type: "url", MimeType: "application/pdf", Value: "https://example.org/x"}}, false},
		{chat.Part{Type: "document", Source: data("application/pdf", "")}, false},
		{chat.Part{Type: "document", Source: data("application/pdf\r\n", "AA")}, false},
		{chat.Part{Type: "document"}, false},
	} {
		if _, why := mediaPart(tt.part); (why == "") != tt.ok {
			t.Errorf("%+v from %+v: %q", tt.part.Type, tt.part.Source, why)
		}
	}
}

// Faults that stay are not tried again, and no text of a fault names an address.
func TestFaultsOfConnections(t *testing.T) {
	timeout := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3)}, Err: context.DeadlineExceeded}
	for name, tt := range map[string]struct {
		err       error
		permanent bool
		want      string
	}{
		"certificate": {&tls.CertificateVerificationError{Err: errors.New("10.1.2.3")}, true, "certificate is not trusted"},
		"authority":   {x509.UnknownAuthorityError{}, true, "failed"},
		"no TLS":      {tls.RecordHeaderError{Msg: "10.1.2.3"}, true, "does not speak TLS"},
		"scheme":      {http.ErrSchemeMismatch, true, "does not speak TLS"},
		"no host":     {&net.DNSError{Name: "10.1.2.3", IsNotFound: true}, true, "does not exist"},
		"lookup":      {&net.DNSError{Name: "10.1.2.3"}, false, "could not be looked up"},
		"closed":      {io.EOF, false, "closed the connection"},
		"cut":         {io.ErrUnexpectedEOF, false, "closed the connection"},
		"timeout":     {timeout, false, "timed out"},
		"other":       {errors.New("10.1.2.3"), false, "the connection failed"},
	} {
		err := fmt.Errorf("post: %w", tt.err)
		if got := permanent(err); got != tt.permanent {
			t.Errorf("%s: stays %t", name, got)
		}
		if text := networkText(err); !strings.Contains(text, tt.want) || strings.Contains(text, "10.1.2.3") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// What is no event stream is none, whatever its status; what says nothing of its kind may be
// one.
func TestKindsOfResponses(t *testing.T) {
	m, err := NewOpenAI("https://example.org/v1", OpenAIOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]bool{
		"": true, "text/event-stream": true, "text/event-stream; charset=utf-8": true, "text/plain": true, "application/octet-stream": true,
		"text/html": false, "application/json": false, "text/event-stream; =": false,
	} {
		w := httptest.NewRecorder()
		w.Header()["Content-Type"] = []string{kind}
		if f := m.explainResponse(w.Result()); (f == nil) != want {
			t.Errorf("%q: %v", kind, f)
		}
	}
	for status, want := range map[int]error{200: chat.ErrMalformed, 299: chat.ErrMalformed, 0: chat.ErrUnavailable, 302: chat.ErrRefused, 404: chat.ErrRefused, 500: chat.ErrUnavailable} {
		if f := m.explainStatus(status, nil, providerError{}); !errors.Is(f.err, want) {
			t.Errorf("%d: %v", status, f.err)
		}
	}
}

// Numbers of a provider's error are its status only where they can be one.
func TestErrorsOfProviders(t *testing.T) {
	m, err := NewOpenAI("https://example.org/v1", OpenAIOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]providerError{
		`{"error":{"message":"x","code":429}}`:                     {found: true, status: 429, code: "429", message: "x"},
		`{"error":{"message":"x","code":20012}}`:                   {found: true, code: "20012", message: "x"},
		`{"error":{"message":"x","code":399}}`:                     {found: true, code: "399", message: "x"},
		`{"error":{"message":"x","type":"overloaded_error"}}`:      {found: true, status: 503, kind: "overloaded_error", message: "x"},
		`{"error":{"message":"x","code":400,"type":"overloaded"}}`: {found: true, status: 400, code: "400", kind: "overloaded", message: "x"},
		`{"error":null,"message":"x"}`:                             {found: true, message: "x"},
		`{"error":null}`:                                           {},
		`[]`:                                                       {},
		`[{"error":"x"}]`:                                          {found: true, message: "x"},
		`<html>`:                                                   {},
	} {
		if got := m.parseError([]byte(body)); got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
	if got := m.errorIn(io.MultiReader(strings.NewReader(`{"error":"x"}`), failingReader{})); got.message != "x" {
		t.Errorf("cut behind its end: %+v", got)
	}
	if got := m.errorIn(failingReader{}); got.found {
		t.Errorf("nothing was read: %+v", got)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Where an object ends is known whatever its texts say.
func TestWholeness(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true, `{"a":"}"}`: true, `{"a":"}`: false, `{"a":"\"}"}`: true, `{"a":"\\"}`: true, `{"a":[`: false, `{"a":[]}`: true, `[{}]`: true,
		`[{}`: false, ``: false, ` `: false, `"x"`: false, `{"a":{}`: false, `{"a\`: false,
	} {
		var w wholeness
		for _, piece := range strings.SplitAfter(text, "") {
			w.see(piece)
		}
		if w.is() != want {
			t.Errorf("%s: whole %t", text, w.is())
		}
	}
}

// A key has the characters of one, and ids that are kept those that every provider takes.
func TestCharactersOfKeysAndIDs(t *testing.T) {
	for key, want := range map[string]bool{"sk-~!": true, "a b": false, "a\x7f": false, "é": false, "": true} {
		if got := checkKey(key) == nil; got != want {
			t.Errorf("%q is a key: %t", key, got)
		}
	}
	o := OpenAIOptions{NewID: func() string { return "fresh" }}
	for id, want := range map[string]string{"call_~!": "call_~!", "a b": "fresh", "a\x7f": "fresh", "é": "fresh", "": "fresh", strings.Repeat("x", 65): "fresh"} {
		l := callList{o: &o, taken: map[string]bool{}}
		if got := l.idFor(id); got != want {
			t.Errorf("%q is kept as %q", id, got)
		}
	}
}
