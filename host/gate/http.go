package gate

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
)

const (
	// mostBody is the largest answer that still fits the way back to the guest
	// when it has to go as base64.
	mostBody = 11 << 20
	// headBytes is set aside of a quota for lines and headers of a request and its
	// answer.
	headBytes = 4 << 10
	// defaultBody is what a rule without max_response lets in, as far as quotas are
	// concerned.
	defaultBody = 8 << 20
)

// request makes one HTTP request.
func (s *call) request(ctx context.Context, r abi.Request, rec *Record) abi.Response {
	if s.gate.o.Fetch == nil || s.gate.o.Secrets == nil {
		return abi.Refuse(abi.Unavailable, "http_request: requests cannot be made here")
	}
	req, err := decodeHTTP(r.Body)
	if err != nil {
		return abi.Refuse(abi.Invalid, "http_request: "+err.Error())
	}
	injection, err := s.gate.o.Secrets.Prepare(s.granted.Secrets(), secrets.Outbound{URL: req.URL, Header: req.Header, Body: req.Body})
	if err != nil {
		return s.refuse(ctx, rec, err)
	}
	lease, refusal := s.lease(ctx, len(r.Body))
	if refusal != nil {
		return refused(refusal)
	}
	rules := &hops{call: s, ctx: ctx, rec: rec, most: lease.bytes - int64(len(r.Body)) - headBytes}
	req.Clean = s.clean
	answer, err := s.gate.o.Fetch.Do(ctx, s.module.Name, rules, injection.Apply, req)
	rec.Addr, rec.Sent, rec.Received, rec.Secrets = answer.Addr, answer.Sent, answer.Received, injection.Used()
	lease.settle(answer.Sent + answer.Received)
	if err != nil {
		return s.refuse(ctx, rec, err)
	}
	return s.answer(ctx, rec, answer)
}

// hops decides about each hop of a request as the grant does, and holds it to the
// rate of the rule and to what is left of a quota.
type hops struct {
	call *call
	ctx  context.Context // of the request, for the log
	rec  *Record
	most int64 // bytes of an answer
}

// HTTP implements [fetch.Rules].
func (h *hops) HTTP(method string, u *url.URL) (capability.HTTPRule, *capability.Refusal) {
	if h.call.gate.o.Secrets.Redactor().Names(u.Host) { // which is in lower case now
		return capability.HTTPRule{}, &capability.Refusal{Code: abi.Denied, Text: "the host of the URL holds the value of a secret"}
	}
	h.rec.Host = u.Host
	rule, refusal := h.call.granted.HTTP(method, u)
	if refusal != nil {
		h.call.tell(h.ctx, refusal)
		return rule, refusal
	}
	if wait, ok := h.call.gate.rates.take(h.call.module.Name, rule); !ok {
		return rule, &capability.Refusal{Code: abi.Limit, Text: fmt.Sprintf(
			"http: host %s: more than the %s that are allowed: try again in %v", u.Host, rule.Rate, wait)}
	}
	rule.MaxResponse = min(h.most, mostBody, orDefault(rule.MaxResponse))
	return rule, nil
}

func orDefault(maxResponse int64) int64 {
	if maxResponse == 0 {
		return defaultBody
	}
	return maxResponse
}

// refuse turns an error into what the guest is told. Its cause is for the log.
func (s *call) refuse(ctx context.Context, rec *Record, err error) abi.Response {
	code, text := abi.Unavailable, "http_request: the operation failed"
	var denied *capability.Refusal
	var failed *fetch.Refused
	switch {
	case errors.As(err, &failed):
		code, text = failed.Code, failed.Text
		if errors.As(failed.Err, &denied) { // what put secrets in says which
			code = denied.Code
		}
	case errors.As(err, &denied):
		code, text = denied.Code, denied.Text
	}
	if cause := errors.Unwrap(err); cause != nil {
		s.gate.o.Logger.DebugContext(ctx, "a request of a tool was refused or failed", "module", s.module.Name, "host", rec.Host, "error", s.clean(cause.Error()))
	}
	return abi.Refuse(code, s.clean(text))
}

// answer returns what the guest may see of an answer.
func (s *call) answer(ctx context.Context, rec *Record, a fetch.Response) abi.Response {
	if len(rec.Secrets) > 0 {
		if a.Status == http.StatusPartialContent {
			return abi.Refuse(abi.Unavailable, "http_request: the server answers with a part, which nobody asked for: a value could be read in parts")
		}
		a = readable(a)
	}
	redactor := s.gate.o.Secrets.Redactor()
	before := rec.Redactions
	text := func(t string) string {
		t, n := redactor.Text(t)
		rec.Redactions += n
		return t
	}
	out := abi.HTTPResponse{Status: a.Status, URL: text(a.URL), Headers: map[string][]string{}}
	for name, values := range a.Header {
		if redactor.Names(name) {
			rec.Redactions++
			continue
		}
		for _, value := range values {
			out.Headers[name] = append(out.Headers[name], text(value))
		}
	}
	body, n := redactor.Bytes(a.Body)
	rec.Redactions += n
	if rec.Redactions > before {
		maps.DeleteFunc(out.Headers, func(name string, _ []string) bool { return measures(name) })
	}
	if utf8.Valid(body) {
		out.Body = string(body)
	} else {
		out.BodyBase64 = body
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return s.refuse(ctx, rec, err)
	}
	return abi.Response{Body: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}
}

// measures reports whether a header field tells of a body how long it is or what it
// hashes to. Of one that a value was taken out of, it would tell about the value.
func measures(name string) bool {
	switch name {
	case "Content-Length", "Content-Range", "Content-Md5", "Etag", "Digest", "Content-Digest", "Repr-Digest":
		return true
	}
	return false
}

// decodeHTTP reads the body of http_request, strictly.
func decodeHTTP(body []byte) (req fetch.Request, err error) {
	const depth = 2
	root, err := rawjson.Parse(body, depth)
	if err != nil {
		return req, err
	}
	if !root.Is(rawjson.Object) {
		return req, fmt.Errorf("the body is of type %s, allowed is an object", root.What())
	}
	for _, m := range root.Members {
		if err := member(&req, m); err != nil {
			return req, err
		}
	}
	switch {
	case req.URL == "":
		return req, errors.New("url must be there")
	case root.Get("body") != nil && root.Get("bodyBase64") != nil:
		return req, errors.New("body and bodyBase64 are both there: leave one out")
	}
	return req, nil
}

func member(req *fetch.Request, m rawjson.Member) (err error) {
	switch m.Name {
	case "headers":
		req.Header, err = headers(m.Value)
		return err
	case "method", "url", "body", "bodyBase64":
	default:
		return fmt.Errorf("unknown name %+q, allowed are method, url, headers, body, bodyBase64", abi.Cut(m.Name, 40))
	}
	text, err := str(m.Name, m.Value)
	if err != nil {
		return err
	}
	switch m.Name {
	case "method":
		req.Method = text
	case "url":
		req.URL = text
	case "body":
		req.Body = []byte(text)
	default:
		if req.Body, err = base64.StdEncoding.Strict().DecodeString(text); err != nil {
			return errors.New("bodyBase64 is not standard base64")
		}
	}
	return nil
}

func str(name string, n *rawjson.Node) (string, error) {
	if !n.Is(rawjson.String) {
		return "", fmt.Errorf("%s is of type %s, allowed is a string", name, n.What())
	}
	return n.Str(), nil
}

// headers reads {"name":"value"}.
func headers(n *rawjson.Node) (map[string][]string, error) {
	if !n.Is(rawjson.Object) {
		return nil, fmt.Errorf("headers is of type %s, allowed is an object", n.What())
	}
	header := map[string][]string{}
	for _, m := range n.Members {
		text, err := str(fmt.Sprintf("header %+q", abi.Cut(m.Name, 40)), m.Value)
		if err != nil {
			return nil, err
		}
		name := http.CanonicalHeaderKey(m.Name)
		header[name] = append(header[name], text)
	}
	return header, nil
}
