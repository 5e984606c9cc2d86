package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/abi"
)

const userAgent = "hutch"

// exchange is one request with its redirects. One goroutine works on it.
type exchange struct {
	c      *Client
	module string
	rules  Rules
	inject Inject
	clean  func(string) string

	host string // of the hop under way, for errors
	got  Response
}

// hop is one request as the rules decided about it.
type hop struct {
	method string
	url    *url.URL // canonical, without what is injected
	header http.Header
	body   []byte
	rule   capability.HTTPRule
}

// run makes a request and follows its redirects. What it returns is a [*Refused],
// or an error of the exchange that has to be explained.
func (x *exchange) run(ctx context.Context, req Request) error {
	h, refused := x.first(req)
	if refused != nil {
		return refused
	}
	for {
		answer, err := x.send(ctx, h)
		if err != nil {
			return err
		}
		next, refused := x.next(h, answer)
		if refused == nil && next == nil {
			return x.read(h, answer)
		}
		discard(answer)
		if refused != nil {
			return refused
		}
		x.got.Redirects++
		h = next
	}
}

func (x *exchange) first(req Request) (*hop, *Refused) {
	method, refused := checkMethod(req.Method)
	if refused != nil {
		return nil, refused
	}
	u, refusal := capability.ParseURL(nil, req.URL)
	if refusal != nil {
		return nil, decided(refusal)
	}
	header, refused := x.c.guestHeader(req.Header)
	if refused != nil {
		return nil, refused
	}
	h := &hop{method: method, url: u, header: header, body: req.Body}
	return h, x.decide(h)
}

// decide asks the rules about a hop; nothing is resolved or sent before.
func (x *exchange) decide(h *hop) *Refused {
	x.host, x.got.URL = h.url.Host, h.url.String()
	if x.rules == nil {
		return deny("no HTTP is granted")
	}
	asked := *h.url
	rule, refusal := x.rules.HTTP(h.method, &asked)
	if refusal != nil {
		return decided(refusal)
	}
	if most := cmp.Or(rule.MaxRequest, x.c.o.MaxRequest); int64(len(h.body)) > most {
		return overLimit("the request has a body of %d bytes: at most %d are allowed (max_request)", len(h.body), most)
	}
	h.rule = rule
	return nil
}

// complete returns the request to send: what the guest wants, what the host adds,
// and what the injection adds for this hop alone.
func (x *exchange) complete(h *hop) (*http.Request, *Refused) {
	u, header := *h.url, h.header.Clone()
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", userAgent)
	}
	if x.inject != nil {
		if refused := x.injectInto(&u, header); refused != nil {
			return nil, refused
		}
	}
	header.Set("Accept-Encoding", acceptEncoding(h))
	req := &http.Request{Method: h.method, URL: &u, Host: u.Host, Header: header}
	if len(h.body) > 0 {
		req.ContentLength = int64(len(h.body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(h.body)), nil }
		req.Body = io.NopCloser(bytes.NewReader(h.body))
	}
	return req, nil
}

// injectInto lets what the host adds change the query and the header, and nothing else.
func (x *exchange) injectInto(u *url.URL, header http.Header) *Refused {
	before := *u
	if err := x.inject(u, header); err != nil {
		return &Refused{Code: abi.Denied, Text: abi.OneLine(err.Error(), 2*maxShown), Err: err}
	}
	query := u.RawQuery
	if u.RawQuery = before.RawQuery; *u != before {
		return deny("host %s: what was to be added to the request would change where it goes", shown(before.Host))
	}
	if query != before.RawQuery {
		u.RawQuery = query
		added, refusal := capability.CanonicalURL(u)
		if refusal != nil {
			return decided(refusal)
		}
		u.RawQuery = added.RawQuery
	}
	if size := int64(len(u.String())); size > x.c.o.MaxHeaderBytes {
		return overLimit("the URL has %d bytes with what is added to it: at most %d are allowed", size, x.c.o.MaxHeaderBytes)
	}
	if _, size := headerSize(header); size > x.c.o.MaxHeaderBytes {
		return overLimit("the request has %d bytes of header lines with what is added to them: at most %d are allowed", size, x.c.o.MaxHeaderBytes)
	}
	return x.c.checkInjected(header)
}

func (x *exchange) send(ctx context.Context, h *hop) (*http.Response, error) {
	req, refused := x.complete(h)
	if refused != nil {
		return nil, refused
	}
	size := sentSize(req)
	ctx = context.WithValue(ctx, hopKey{}, ctx)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		x.got.Sent += size
		if a, ok := info.Conn.RemoteAddr().(*net.TCPAddr); ok {
			x.got.Addr = a.AddrPort().Addr().Unmap()
		}
	}})
	answer, err := x.c.pool(x.module, h.rule).transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if cause := (blocked{}); errors.As(err, &cause) {
			x.got.Addr = cause.addr
		}
		return nil, err
	}
	x.got.Received += receivedSize(answer)
	return answer, nil
}

func sentSize(req *http.Request) int64 {
	_, header := headerSize(req.Header)
	fixed := len(req.Method) + len(req.URL.RequestURI()) + len(req.Host) + len("  HTTP/1.1\r\nHost: \r\n\r\n")
	return int64(fixed) + header + req.ContentLength
}

func receivedSize(answer *http.Response) int64 {
	_, header := headerSize(answer.Header)
	return int64(len("HTTP/1.1 \r\n\r\n")+len(answer.Status)) + header
}

// next returns the hop that an answer redirects to, or nil if it does not.
func (x *exchange) next(h *hop, answer *http.Response) (*hop, *Refused) {
	location := answer.Header.Get("Location")
	if !redirects(answer.StatusCode) || location == "" || x.c.o.MaxRedirects < 0 {
		return nil, nil
	}
	if x.got.Redirects >= x.c.o.MaxRedirects {
		return nil, overLimit("host %s: redirects once more after %d, which is all that are followed",
			shown(h.url.Host), x.got.Redirects)
	}
	u, refusal := capability.ParseURL(h.url, location)
	if refusal != nil {
		return nil, redirected(h, x.unreadable(h, location, refusal))
	}
	n := &hop{method: h.method, url: u, header: h.header.Clone(), body: h.body}
	if !sameOrigin(h.url, u) {
		maps.DeleteFunc(n.header, func(name string, _ []string) bool { return !keptAcrossOrigins(name) })
	}
	if keeps := answer.StatusCode >= http.StatusTemporaryRedirect; !keeps && n.method != "GET" && n.method != "HEAD" {
		n.method, n.body = "GET", nil
		maps.DeleteFunc(n.header, func(name string, _ []string) bool { return describesBody(name) })
	}
	return n, redirected(h, x.decide(n))
}

// unreadable is why a redirect leads nowhere. The server may have put into it what it
// was sent: that is taken out first, since a part of it would not be found any more.
func (x *exchange) unreadable(h *hop, location string, found *capability.Refusal) *Refused {
	switch {
	case x.clean != nil:
		location = x.clean(location)
	case x.inject != nil:
		location = ""
	}
	refused := decided(found)
	refused.Text = "to a URL that is not followed"
	if _, again := capability.ParseURL(h.url, location); again != nil {
		refused.Text = again.Text
	}
	return refused
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirected says that it was not the guest who asked for what was refused.
func redirected(from *hop, refused *Refused) *Refused {
	if refused != nil {
		refused.Text = "redirect by host " + shown(from.url.Host) + ": " + refused.Text
	}
	return refused
}

// read takes in the answer that ends the exchange.
func (x *exchange) read(h *hop, answer *http.Response) error {
	defer discard(answer)
	if answer.StatusCode < http.StatusOK {
		return &Refused{Code: abi.Unavailable, Text: "host " + shown(h.url.Host) + ": wants to switch protocols, which nobody asked for"}
	}
	header, refused := x.c.visible(answer.Header)
	if refused != nil {
		return refused
	}
	body, decoded, err := x.readBody(h, answer)
	if err != nil {
		return err
	}
	if decoded {
		delete(header, "Content-Encoding")
		delete(header, "Content-Length")
	}
	x.got.Status, x.got.Header, x.got.Body = answer.StatusCode, header, body
	return nil
}
