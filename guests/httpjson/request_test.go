package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

// echo answers in JSON with what it was sent, or as the path says.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/missing":
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, ` {"error":"no such item"} `)
	case "/text":
		_, _ = io.WriteString(w, "grüße")
	case "/bytes":
		_, _ = w.Write([]byte{0xff, 0xfe})
	case "/long":
		_, _ = fmt.Fprintf(w, `["%s"]`, strings.Repeat("ü", 200))
	case "/none":
		w.WriteHeader(http.StatusNoContent)
	default:
		_, _ = fmt.Fprintf(w, `{"sent":%q}`, strings.Join([]string{r.Method, r.URL.String(), r.Header.Get("Accept"), r.Header.Get("Content-Type"), string(body)}, "|"))
	}
}

func call(t *testing.T, args string) sdktest.Result {
	t.Helper()
	return sdktest.Host{Web: http.HandlerFunc(echo)}.Call(t, module, "http_json", args)
}

func TestHTTPJSON(t *testing.T) {
	for args, want := range map[string]string{
		`{"url":"https://a.example/"}`:                                                   `GET|https://a.example/|application/json||`,
		`{"url":"https://a.example/?x=1","query":{"b":"c d&","a":"ü"}}`:                  `GET|https://a.example/?x=1&a=%C3%BC&b=c+d%26|application/json||`,
		`{"url":"https://a.example/","method":"POST","body":{"n":12345678901234567890}}`: `POST|https://a.example/|application/json|application/json|{\"n\":12345678901234567890}`,
		`{"url":"https://a.example/","method":"PUT","body_json":"[1]","headers":{"content-type":"application/merge-patch+json","ACCEPT":"*/*"}}`: `PUT|https://a.example/|*/*|application/merge-patch+json|[1]`,
		`{"url":"https://a.example/","query":{"n":1.50,"t":true,"l":["a b",2],"e":[]}}`:                                                          `GET|https://a.example/?l=a+b&l=2&n=1.50&t=true|application/json||`,
		`{"url":"https://a.example/","method":"DELETE"}`:                                                                                         `DELETE|https://a.example/|application/json||`,
	} {
		got := call(t, args)
		if want := `"json":{"sent":"` + want + `"}`; got.IsError || !strings.Contains(string(got.Structured), want) {
			t.Errorf("%s: got %s, want %s", args, got.Text, want)
		}
	}
}

func TestHTTPJSONAnswers(t *testing.T) {
	const head = `,"headers":{"content-type":"application/json"},`
	for path, want := range map[string]string{
		"missing": `{"status":404,"url":"https://a.example/missing"` + head + `"json":{"error":"no such item"},"truncated":false}`,
		"text":    `{"status":200,"url":"https://a.example/text"` + head + `"text":"grüße","truncated":false}`,
		"long":    `{"status":200,"url":"https://a.example/long"` + head + `"text":"[\"` + strings.Repeat("ü", 98) + `","truncated":true}`,
		"none":    `{"status":204,"url":"https://a.example/none"` + head + `"truncated":false}`,
	} {
		if got := call(t, `{"url":"https://a.example/`+path+`","most":100}`); got.IsError || string(got.Structured) != want {
			t.Errorf("%s: got %s, want %s", path, got.Text, want)
		}
	}
}

func TestHTTPJSONErrors(t *testing.T) {
	for args, want := range map[string]string{
		`{"url":"https://a.example/","query":{"a":{"b":1}}}`: `query parameter "a": is neither text, number, true, false nor a list of these: write objects as text, in the form that the API wants`,
		`{"url":"https://a.example/","query":{"a":null}}`:    `query parameter "a": is neither text, number, true, false nor a list of these: write objects as text, in the form that the API wants`,
		`{"url":"https://a.example/","query":{"a":[["b"]]}}`: `query parameter "a": a list in a list: write texts and numbers alone`,
		`{"url":"/v1"}`:                          `url "/v1" is not absolute: write https://HOST/PATH`,
		`{"url":"https://a.example/","body":{}}`: `a GET has no body: use query, or another method`,
		`{"url":"https://a.example/","method":"POST","body":{},"body_json":"1"}`: `both body and body_json are given: leave one out`,
		`{"url":"https://a.example/","method":"POST","body_json":"{"}`:           `body_json is no JSON`,
		`{"url":"https://a.example/bytes"}`:                                      `https://a.example/bytes answered 200 with 2 bytes of type "application/json", which is no text`,
		`{"url":"https://a.example/","method":"OPTIONS"}`:                        `invalid arguments for http_json: method: "OPTIONS" is none of GET, HEAD, POST, PUT, PATCH, DELETE`,
	} {
		if got := call(t, args); !got.IsError || got.Text != want {
			t.Errorf("%s: got %q, want %q", args, got.Text, want)
		}
	}
}
