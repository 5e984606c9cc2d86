package sdktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/protocol/abi"
)

// Page is one answer of [Pages].
type Page struct {
	// Status is 200 if it is zero.
	Status int
	// Header has a Content-Type made from Body unless it has one.
	Header map[string]string
	Body   string
}

// Pages are answers by method and URL, such as "GET https://example.org/". What is
// not there is answered with 404 and a list of what is.
type Pages map[string]Page

// ServeHTTP answers like a server of every host in p.
func (p Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, ok := p[r.Method+" "+r.URL.String()]
	if !ok {
		page = Page{Status: http.StatusNotFound, Body: fmt.Sprintf("no page %s %s; there are %s",
			r.Method, r.URL, strings.Join(slices.Sorted(maps.Keys(p)), ", "))}
	}
	for name, value := range page.Header {
		w.Header().Set(name, value)
	}
	if page.Status != 0 {
		w.WriteHeader(page.Status)
	}
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, page.Body) // into memory
	}
}

// exchange is one request with its redirects.
type exchange struct {
	r      *recorder
	in     abi.HTTPRequest
	body   []byte
	origin string // of the first hop; no other gets secrets
	most   int64  // bytes of the answer
}

func (r *recorder) fetch(body []byte) abi.Response {
	const maxRedirects = 5
	x := exchange{r: r}
	if err := strictly(body, &x.in); err != nil {
		return invalid(abi.OpHTTP, err.Error())
	}
	if x.in.Method == "" {
		x.in.Method = http.MethodGet
	}
	x.body = append([]byte(x.in.Body), x.in.BodyBase64...)
	for range maxRedirects + 1 {
		res, refused := x.hop()
		if refused != nil {
			return *refused
		}
		if !x.redirected(res) {
			return x.answer(res)
		}
	}
	return abi.Refuse(abi.Limit, fmt.Sprintf("%s: more than %d redirects", abi.OpHTTP, maxRedirects))
}

// strictly decodes what a guest sent, which must have nothing more.
func strictly(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (x *exchange) hop() (*http.Response, *abi.Response) {
	u, err := url.Parse(x.in.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		r := invalid(abi.OpHTTP, fmt.Sprintf("%q is no absolute URL with https or http and without a user", abi.Cut(x.in.URL, 100)))
		return nil, &r
	}
	if x.origin == "" {
		x.origin = u.Scheme + u.Host
	}
	asked := fmt.Sprintf("%s %s://%s%s", x.in.Method, u.Scheme, u.Host, abi.Cut(u.EscapedPath(), 100))
	rule := slices.IndexFunc(x.r.requests.HTTP, func(h sdk.HTTP) bool { return matches(h, x.in.Method, u) })
	if rule < 0 {
		r := deny(abi.OpHTTP, asked+" is not in the module's Requests: declare it, or a host denies it")
		return nil, &r
	}
	x.most = bytesOf(x.r.requests.HTTP[rule].MaxResponse, 8<<20)
	if x.r.host.Web == nil {
		r := abi.Refuse(abi.Unavailable, fmt.Sprintf("%s: %s cannot be reached: the fake host has no Web", abi.OpHTTP, u.Host))
		return nil, &r
	}
	return x.serve(u)
}

func (x *exchange) serve(u *url.URL) (*http.Response, *abi.Response) {
	req, err := http.NewRequest(x.in.Method, u.String(), bytes.NewReader(x.body))
	if err != nil {
		r := invalid(abi.OpHTTP, err.Error())
		return nil, &r
	}
	for name, value := range x.in.Headers {
		req.Header.Set(name, value)
	}
	if u.Scheme+u.Host == x.origin {
		if missing := x.r.inject(req); missing != "" {
			r := deny(abi.OpHTTP, "the secret "+missing+" is not set")
			return nil, &r
		}
	}
	rec := httptest.NewRecorder()
	x.r.host.Web.ServeHTTP(rec, req)
	return rec.Result(), nil
}

// inject puts secrets where the module's Requests say, and returns the name of one
// that is not there.
func (r *recorder) inject(req *http.Request) (missing string) {
	for _, s := range r.requests.Secrets {
		if !hostMatches(s.Host, req.URL.Hostname()) || !pathMatches(s.Paths, req.URL.Path) {
			continue
		}
		value, ok := r.host.Secrets[s.Name]
		if !ok {
			return s.Name
		}
		if s.Header != "" {
			req.Header.Set(s.Header, s.Prefix+value)
			continue
		}
		q := req.URL.Query()
		q.Set(s.Query, s.Prefix+value)
		req.URL.RawQuery = q.Encode()
	}
	return ""
}

// redirected prepares the next hop, if there is one.
func (x *exchange) redirected(res *http.Response) bool {
	to := res.Header.Get("Location")
	base, err := url.Parse(x.in.URL)
	if err != nil || to == "" || !slices.Contains([]int{301, 302, 303, 307, 308}, res.StatusCode) {
		return false
	}
	next, err := base.Parse(to)
	if err != nil {
		return false
	}
	x.in.URL = next.String()
	if res.StatusCode < 307 && x.in.Method != http.MethodHead {
		x.in.Method, x.body = http.MethodGet, nil
	}
	return true
}

func (x *exchange) answer(res *http.Response) abi.Response {
	res.Header.Del("Set-Cookie")
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return abi.Refuse(abi.Unavailable, string(abi.OpHTTP)+": "+err.Error())
	}
	if int64(len(body)) > x.most {
		return abi.Refuse(abi.Limit, fmt.Sprintf("%s: the answer has more than %d bytes (max_response)", abi.OpHTTP, x.most))
	}
	out := abi.HTTPResponse{Status: res.StatusCode, URL: x.in.URL, Headers: res.Header}
	if utf8.Valid(body) {
		out.Body = string(body)
	} else {
		out.BodyBase64 = body
	}
	return encoded(out)
}

func encoded(v any) abi.Response {
	b, err := json.Marshal(v)
	if err != nil {
		return abi.Refuse(abi.Unavailable, err.Error())
	}
	return abi.Response{Body: b}
}
