package fetch

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
)

type oneRule struct{ rule capability.HTTPRule }

func (o oneRule) HTTP(method string, u *url.URL) (capability.HTTPRule, *capability.Refusal) {
	if !o.rule.Match(method, u) {
		return capability.HTTPRule{}, &capability.Refusal{Text: "not granted"}
	}
	return o.rule, nil
}

// canned answers without a connection.
type canned struct {
	header http.Header
	body   []byte
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Status: "200 OK", StatusCode: 200, Header: c.header, ContentLength: int64(len(c.body)),
		Body: io.NopCloser(bytes.NewReader(c.body))}, nil
}

func benchRequest(rawURL string) Request {
	return Request{Method: "POST", URL: rawURL + "/repos/owner/name/issues?state=open&per_page=100", Body: []byte(`{"title":"hello"}`),
		Header: map[string][]string{"accept": {"application/json"}, "content-type": {"application/json"}, "x-github-api-version": {"2022-11-28"}}}
}

func inject(_ *url.URL, h http.Header) error { h.Set("Authorization", "Bearer x"); return nil }

// BenchmarkOwn is what a request costs in this package: everything but the
// transport and the network.
func BenchmarkOwn(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			c := New(Options{})
			rule := capability.HTTPRule{Host: "api.github.com", Methods: []string{"GET", "POST"}, Paths: []string{"/repos/"}}
			c.pools[poolKey{module: "m"}] = &pool{transport: canned{http.Header{"Content-Type": {"application/json"},
				"Date": {"Mon, 30 Nov 2026 07:00:00 GMT"}, "Server": {"x"}, "X-Ratelimit-Remaining": {"59"}}, make([]byte, size)}, close: func() {}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Do(b.Context(), "m", oneRule{rule}, inject, benchRequest("https://api.github.com")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLoopback compares a request with the bare transport doing the same.
func BenchmarkLoopback(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, 1<<10))
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		b.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("fetch", func(b *testing.B) {
		c := New(Options{})
		defer c.Close()
		rule := capability.HTTPRule{Scheme: "http", Host: "127.0.0.1", Ports: []int{port}, Methods: []string{"POST"},
			AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Do(b.Context(), "m", oneRule{rule}, inject, benchRequest(s.URL)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("transport", func(b *testing.B) {
		t := &http.Transport{DisableCompression: true}
		defer t.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			want := benchRequest(s.URL)
			req, err := http.NewRequestWithContext(b.Context(), want.Method, want.URL, strings.NewReader(string(want.Body)))
			if err != nil {
				b.Fatal(err)
			}
			for name, values := range want.Header {
				req.Header.Set(name, values[0])
			}
			answer, err := t.RoundTrip(req)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.ReadAll(answer.Body)
			_ = answer.Body.Close()
		}
	})
}
