// Package fetch lets a tool make HTTP requests.
//
//	var module = sdk.Serve(sdk.Module{
//		Requests: sdk.Requests{HTTP: []sdk.HTTP{{Host: "api.example.org", Reason: "Looks parcels up."}}},
//		...
//	})
//
//	func track(c *sdk.Call, in trackInput) (parcel, error) {
//		var p parcel
//		err := fetch.GetJSON(c, "https://api.example.org/parcels/"+url.PathEscape(in.Number), &p)
//		return p, err
//	}
//
// The host makes the request: it follows redirects, decompresses, and puts in the
// secrets that the module asked for and an operator granted. Some headers cannot be
// set, such as Host; some are not shown, such as Set-Cookie.
//
// A request that was refused or got no answer is an [*sdk.Refusal]: not declared or
// not granted is [sdk.ErrDenied], a body over its limit [sdk.ErrLimit], a server that
// does not answer [sdk.ErrUnavailable]. An answer with an error status is an answer
// for [Do], and a [*StatusError] for [GetJSON] and [SendJSON].
package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/protocol/abi"
)

// Request is what to ask for. Only URL must be there.
type Request struct {
	// Method is GET if it is empty.
	Method string
	// URL is absolute. Escape what goes into it: url.PathEscape, url.Values.
	URL    string
	Header map[string]string
	Body   []byte
}

// Response is an answer, whatever its status.
type Response struct {
	Status int
	// URL is what answered, after redirects.
	URL string
	// Header is by name, such as Content-Type; [Response.Get] reads it.
	Header map[string][]string
	Body   []byte
}

// OK reports whether the status is one of success: 200 to 299.
func (r Response) OK() bool { return r.Status >= 200 && r.Status <= 299 }

// Get returns the first value of a header, in whatever case name is, or "".
func (r Response) Get(name string) string {
	for found, values := range r.Header {
		if strings.EqualFold(found, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// JSON decodes the body into v, a pointer. The body must be one JSON value.
func (r Response) JSON(v any) error {
	if err := json.Unmarshal(r.Body, v); err != nil {
		return fmt.Errorf("%s answered %d with something else than was expected: %w", r.URL, r.Status, err)
	}
	return nil
}

// StatusError is an answer with a status that is not one of success.
type StatusError struct{ Response Response }

// Error names the URL and the status, and shows how the body begins: that is where
// services say what was wrong.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answered %d", abi.OneLine(e.Response.URL, 200), e.Response.Status)
	if body := abi.OneLine(string(bytes.TrimSpace(e.Response.Body)), 300); body != "" {
		text += ": " + body
	}
	return text
}

// Do makes one request.
func Do(c *sdk.Call, r Request) (Response, error) {
	in := abi.HTTPRequest{Method: r.Method, URL: r.URL, Headers: r.Header}
	if utf8.Valid(r.Body) {
		in.Body = string(r.Body)
	} else {
		in.BodyBase64 = r.Body
	}
	var out abi.HTTPResponse
	if err := c.Ask(sdk.Gated{Op: abi.OpHTTP, Import: importRequest}, in, &out); err != nil {
		return Response{}, err
	}
	got := Response{Status: out.Status, URL: out.URL, Header: out.Headers, Body: out.BodyBase64}
	if len(got.Body) == 0 {
		got.Body = []byte(out.Body)
	}
	if got.URL == "" {
		got.URL = r.URL
	}
	return got, nil
}

// GetJSON gets url and decodes the answer into out, a pointer. A status that is not
// one of success is a [*StatusError].
func GetJSON(c *sdk.Call, url string, out any) error {
	return exchange(c, Request{URL: url, Header: map[string]string{"Accept": "application/json"}}, out)
}

// SendJSON sends in as JSON and decodes the answer into out, a pointer, or nil if
// the answer does not matter. Otherwise it is like [GetJSON].
func SendJSON(c *sdk.Call, method, url string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("the body for %s: %w", url, err)
	}
	header := map[string]string{"Accept": "application/json", "Content-Type": "application/json"}
	return exchange(c, Request{Method: method, URL: url, Header: header, Body: body}, out)
}

func exchange(c *sdk.Call, r Request, out any) error {
	got, err := Do(c, r)
	switch {
	case err != nil:
		return err
	case !got.OK():
		return &StatusError{got}
	case out == nil:
		return nil
	case len(got.Body) == 0:
		return errors.New(got.URL + " answered without a body; JSON was expected")
	}
	return got.JSON(out)
}
