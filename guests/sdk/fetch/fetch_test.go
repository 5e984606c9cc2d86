package fetch_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/fetch"
	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

// within runs do as a tool of a module that asks for these requests.
func within(t *testing.T, host sdktest.Host, asked []sdk.HTTP, do func(c *sdk.Call) error) sdktest.Result {
	t.Helper()
	m := &sdk.Module{Requests: sdk.Requests{HTTP: asked}, Tools: []sdk.Tool{
		sdk.Define(sdk.Spec{Name: "do", Description: "Does."}, func(c *sdk.Call, _ struct{}) (string, error) { return "", do(c) }),
	}}
	return host.Call(t, m, "do", nil)
}

var everywhere = []sdk.HTTP{{Host: "*", Methods: []string{"GET", "POST"}, Reason: "Tests."}}

// echo answers with what it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	w.Header().Add("X-Next", "a")
	w.Header().Add("X-Next", "b")
	w.Header().Set("Set-Cookie", "c=d")
	w.WriteHeader(http.StatusTeapot)
	_, _ = io.WriteString(w, r.Method+" "+r.URL.String()+" "+r.Header.Get("Accept")+" "+string(body))
}

func TestDo(t *testing.T) {
	host := sdktest.Host{Web: http.HandlerFunc(echo)}
	for want, r := range map[string]fetch.Request{
		"GET https://a.example/x?q=1  ":           {URL: "https://a.example/x?q=1"},
		"POST https://a.example/ text/plain text": {Method: "POST", URL: "https://a.example/", Header: map[string]string{"accept": "text/plain"}, Body: []byte("text")},
		"POST https://a.example/  \xff\x00":       {Method: "POST", URL: "https://a.example/", Body: []byte("\xff\x00")},
	} {
		got := within(t, host, everywhere, func(c *sdk.Call) error {
			got, err := fetch.Do(c, r)
			if string(got.Body) != want || got.Status != http.StatusTeapot || got.OK() || got.URL != r.URL ||
				got.Get("x-next") != "a" || len(got.Header["X-Next"]) != 2 || got.Get("Set-Cookie") != "" {
				t.Errorf("got %+v, want %q", got, want)
			}
			return err
		})
		if got.IsError {
			t.Error(got.Text)
		}
	}
}

func TestRefusals(t *testing.T) {
	one := []sdk.HTTP{{Host: "a.example", MaxResponse: "8B", Reason: "Tests."}}
	web := sdktest.Pages{"GET https://a.example/long": {Body: "123456789"}}
	for _, c := range []struct {
		web    http.Handler
		asked  []sdk.HTTP
		method string
		url    string
		want   error
	}{
		{web, nil, "", "https://a.example/", sdk.ErrDenied},
		{web, one, "", "https://b.example/", sdk.ErrDenied},
		{web, one, "POST", "https://a.example/", sdk.ErrDenied},
		{web, one, "", "a.example", sdk.ErrInvalid},
		{web, one, "", "https://a.example/long", sdk.ErrLimit},
		{nil, one, "", "https://a.example/", sdk.ErrUnavailable},
	} {
		got := within(t, sdktest.Host{Web: c.web}, c.asked, func(c1 *sdk.Call) error {
			_, err := fetch.Do(c1, fetch.Request{Method: c.method, URL: c.url})
			if !errors.Is(err, c.want) {
				t.Errorf("%s %s: got %v, want %v", c.method, c.url, err, c.want)
			}
			return err
		})
		if !got.IsError || !strings.HasPrefix(got.Text, "http_request: ") {
			t.Errorf("%s %s: the model reads %q", c.method, c.url, got.Text)
		}
	}
}

func TestJSON(t *testing.T) {
	web := sdktest.Pages{
		"GET https://a.example/good":    {Body: `{"n":12345678901234567}`},
		"POST https://a.example/good":   {Body: `{"n":2}`},
		"GET https://a.example/empty":   {Status: http.StatusNoContent},
		"GET https://a.example/page":    {Body: `<html>`},
		"GET https://a.example/missing": {Status: http.StatusNotFound, Body: "no\x1b such\nthing"},
	}
	type answer struct{ N int64 }
	get := func(url string) func(*sdk.Call, *answer) error {
		return func(c *sdk.Call, out *answer) error { return fetch.GetJSON(c, url, out) }
	}
	for _, c := range []struct {
		do   func(*sdk.Call, *answer) error
		n    int64
		want string
	}{
		{get("https://a.example/good"), 12345678901234567, ""},
		{func(c *sdk.Call, out *answer) error {
			return fetch.SendJSON(c, "POST", "https://a.example/good", answer{1}, out)
		}, 2, ""},
		{func(c *sdk.Call, _ *answer) error {
			return fetch.SendJSON(c, "POST", "https://a.example/good", answer{1}, nil)
		}, 0, ""},
		{func(c *sdk.Call, _ *answer) error {
			return fetch.SendJSON(c, "POST", "https://a.example/good", func() {}, nil)
		}, 0, "the body for https://a.example/good: json: unsupported type: func()"},
		{get("https://a.example/empty"), 0, "https://a.example/empty answered without a body; JSON was expected"},
		{get("https://a.example/page"), 0, "https://a.example/page answered 200 with something else than was expected: invalid character '<' looking for beginning of value"},
		{get("https://a.example/missing"), 0, "https://a.example/missing answered 404: no\ufffd such thing"},
	} {
		got := within(t, sdktest.Host{Web: web}, everywhere, func(call *sdk.Call) error {
			var out answer
			err := c.do(call, &out)
			if out.N != c.n {
				t.Errorf("got %d, want %d", out.N, c.n)
			}
			return err
		})
		if got.Text != c.want {
			t.Errorf("got %q, want %q", got.Text, c.want)
		}
	}
}

func TestStatusErrorKeepsTheAnswer(t *testing.T) {
	within(t, sdktest.Host{Web: sdktest.Pages{}}, everywhere, func(c *sdk.Call) error {
		err := fetch.GetJSON(c, "https://a.example/", nil)
		if status, ok := errors.AsType[*fetch.StatusError](err); !ok || status.Response.Status != http.StatusNotFound {
			t.Errorf("got %v", err)
		}
		return nil
	})
}
