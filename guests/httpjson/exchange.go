package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/guests/sdk/fetch"
)

// request is what is sent.
func (in requestInput) request() (fetch.Request, error) {
	at, err := in.address()
	if err != nil {
		return fetch.Request{}, err
	}
	r := fetch.Request{Method: in.Method, URL: at, Header: map[string]string{"Accept": "application/json"}}
	if r.Body, err = in.body(); err != nil {
		return fetch.Request{}, err
	}
	if r.Body != nil {
		r.Header["Content-Type"] = "application/json"
	}
	for name, value := range in.Headers {
		for set := range r.Header {
			if strings.EqualFold(set, name) {
				delete(r.Header, set)
			}
		}
		r.Header[name] = value
	}
	return r, nil
}

func (in requestInput) address() (string, error) {
	u, err := url.Parse(in.URL)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("url %q is not absolute: write https://HOST/PATH", in.URL)
	}
	q := url.Values{}
	for name, value := range in.Query {
		values, err := parameter(value)
		if err != nil {
			return "", fmt.Errorf("query parameter %q: %w", name, err)
		}
		q[name] = values
	}
	if u.RawQuery != "" && len(q) > 0 {
		u.RawQuery += "&"
	}
	u.RawQuery += q.Encode()
	return u.String(), nil
}

// parameter writes a value as often as it stands in the query.
func parameter(value any) (values []string, err error) {
	switch v := value.(type) {
	case string:
		return []string{v}, nil
	case json.Number:
		return []string{v.String()}, nil
	case bool:
		return []string{strconv.FormatBool(v)}, nil
	case []any:
		for _, item := range v {
			if _, nested := item.([]any); nested {
				return nil, errors.New("a list in a list: write texts and numbers alone")
			}
			one, err := parameter(item)
			if err != nil {
				return nil, err
			}
			values = append(values, one...)
		}
		return values, nil
	}
	return nil, errors.New("is neither text, number, true, false nor a list of these: write objects as text, in the form that the API wants")
}

// body returns nil for none.
func (in requestInput) body() ([]byte, error) {
	hasBody := in.Body != nil || in.BodyJSON != ""
	switch {
	case in.Body != nil && in.BodyJSON != "":
		return nil, errors.New("both body and body_json are given: leave one out")
	case hasBody && (in.Method == "GET" || in.Method == "HEAD"):
		return nil, fmt.Errorf("a %s has no body: use query, or another method", in.Method)
	case in.Body != nil:
		return json.Marshal(in.Body)
	case in.BodyJSON != "" && !json.Valid([]byte(in.BodyJSON)):
		return nil, errors.New("body_json is no JSON")
	case hasBody:
		return []byte(in.BodyJSON), nil
	}
	return nil, nil
}

// outputOf is what a model reads of an answer: JSON as a whole, or not as JSON.
func outputOf(got fetch.Response, most int) (requestOutput, error) {
	out := requestOutput{Status: got.Status, URL: got.URL, Headers: map[string]string{}}
	for name, values := range got.Header {
		out.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	body := bytes.TrimSpace(got.Body)
	if !utf8.Valid(body) {
		return out, fmt.Errorf("%s answered %d with %d bytes of type %q, which is no text", got.URL, got.Status, len(body), got.Get("Content-Type"))
	}
	switch end := offset(string(body), most); {
	case end < len(body):
		out.Text, out.Truncated = string(body[:end]), true
	case json.Valid(body):
		out.JSON = body
	default:
		out.Text = string(body)
	}
	return out, nil
}

// offset is where in text the character begins that has n before it.
func offset(text string, n int) int {
	for at := range text {
		if n == 0 {
			return at
		}
		n--
	}
	return len(text)
}
