// Package fetch makes HTTP requests for guests, confined to granted hosts and
// checked addresses.
//
// What a guest asks for is first brought into the one form in which it would be
// sent ([Request] says what is refused on the way), and that form is what the
// [Rules] decide about. A host's name is resolved once; of its addresses, those
// remain that are public or that the rule allows by prefix, and one of these is
// dialled as it is, with the name kept for the Host header and for TLS. A
// redirect is a new request: same checks, same decision, and nothing that could
// be a credential crosses to another origin. There is no proxy, no cookie jar
// and no cache, and no connection that two modules share.
//
// A [Client] may be used from any goroutine. While [Client.Do] runs, goroutines
// of net/http and one for each address that is being dialled belong to it; they
// end with its context. Connections that wait to be used again are kept for the
// module they were opened for, until [Client.Forget] or [Client.Close].
package fetch

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/abi"
)

// Resolver looks names up; a [*net.Resolver] is one. A name with a dot in it is
// asked for with another at its end, so that no search list is appended to it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options configures a [Client]. Its zero value works.
type Options struct {
	// Resolver defaults to the system's.
	Resolver Resolver
	// Dial connects to an address that has been checked, always an IP address
	// and a port. It defaults to that of a [net.Dialer]; tests replace it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Own returns the addresses of this machine, none of which is public for a
	// guest. It defaults to those of the network interfaces.
	Own func() ([]netip.Addr, error)
	// Roots are the authorities that a TLS server is checked against; nil means
	// the system's.
	Roots *x509.CertPool
	// Timeout is the longest a request may take from resolving to the last byte
	// of the answer, redirects included. Default 30 s.
	Timeout time.Duration
	// ConnectTimeout is the longest that connecting may take, and then the TLS
	// handshake. Default 10 s.
	ConnectTimeout time.Duration
	// IdleTimeout is how long a connection waits to be used again. Default 60 s.
	IdleTimeout time.Duration
	// MaxRedirects is how many redirects are followed. Default 5; negative
	// means that the guest gets the redirect itself.
	MaxRedirects int
	// MaxHeaders is how many header lines a request may have, and how many of
	// those that a guest may see an answer may have. Default 64.
	MaxHeaders int
	// MaxHeaderBytes bounds the header lines of a request, and of an answer.
	// Default 64 KiB.
	MaxHeaderBytes int64
	// MaxRequest and MaxResponse bound the bodies, in bytes, where the rule does
	// not; that of an answer as it was sent and also when it is decompressed.
	// Default 8 MiB each.
	MaxRequest, MaxResponse int64
	// MaxPools is for how many modules connections are kept. Default 256.
	MaxPools int
	// RequestHeaders and ResponseHeaders are names that a guest may set or see
	// besides those it may anyway; "X-Acme-*" stands for all that begin so. What
	// frames a message, what speaks for a proxy and what sets cookies stays
	// refused.
	RequestHeaders, ResponseHeaders []string
}

func (o Options) withDefaults() Options {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Own == nil {
		o.Own = interfaceAddrs
	}
	orDefault(&o.Timeout, 30*time.Second)
	orDefault(&o.ConnectTimeout, 10*time.Second)
	orDefault(&o.IdleTimeout, 60*time.Second)
	orDefault(&o.MaxRedirects, 5)
	orDefault(&o.MaxHeaders, 64)
	orDefault(&o.MaxHeaderBytes, 64<<10)
	orDefault(&o.MaxRequest, 8<<20)
	orDefault(&o.MaxResponse, 8<<20)
	orDefault(&o.MaxPools, 256)
	return o
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Rules decides about one hop. The URL is as [capability.ParseURL] returns it, and
// belongs to the callee.
type Rules interface {
	HTTP(method string, u *url.URL) (capability.HTTPRule, *capability.Refusal)
}

// Inject adds what the host knows and the guest does not, such as a credential,
// to one hop: header fields to h, parameters to the query of u; it may change
// nothing else. It is called again for each redirect, without what it added to
// the hop before. The text of its error is shown to the guest.
type Inject func(u *url.URL, h http.Header) error

// Request is what a guest asks for. It must not be changed while [Client.Do] runs.
//
// Refused are: a scheme other than http and https; a user in the URL; a host in
// any but the usual notation; dot segments that an encoding hides, and control
// characters; CONNECT and TRACE; a header field that is not on the list of those
// a guest may set (Accept-Encoding may be set, and is replaced: the answer is
// decompressed here); a value with anything but printable ASCII and tabs.
type Request struct {
	// Method is GET if it is empty; letters are taken as upper case.
	Method string
	URL    string
	Header map[string][]string
	Body   []byte
	// Clean takes out of a text what may have been injected. Nothing that a server
	// sent is quoted in an error before that, nor, if something is injected and there
	// is no Clean, at all.
	Clean func(text string) string
}

// Response is an answer. If [Client.Do] fails it holds what is known for the
// record: URL, Addr, Redirects, Sent and Received.
type Response struct {
	Status int
	// Header holds the fields that a guest may see, by canonical name.
	Header map[string][]string
	// Body is decompressed.
	Body []byte
	// URL is what was asked last, without what was injected.
	URL string
	// Addr is the address that the last hop used or, if none of its addresses
	// could be used, one that was refused.
	Addr      netip.Addr
	Redirects int
	// Sent and Received count, over all hops, request or status lines, header
	// fields and bodies as HTTP/1.1 would send them, without TLS and chunking.
	Sent, Received int64
}

// Refused is why a request came to nothing.
type Refused struct {
	// Code is Denied, Invalid, Limit, Unavailable or Cancelled.
	Code abi.Code
	// Text is one line that a guest may read: no address, nothing injected.
	Text string
	// Err is the cause as the host saw it, for its own log; it may be nil.
	Err error
}

// Error returns the text.
func (r *Refused) Error() string { return r.Text }

// Unwrap returns the cause.
func (r *Refused) Unwrap() error { return r.Err }

// Client makes requests for guests. It is made by [New].
type Client struct {
	o        Options
	request  headerList
	response headerList

	mu    sync.Mutex // guards pools and uses
	pools map[poolKey]*pool
	uses  int64     // counts lookups, to know which pool was used last
	gzips sync.Pool // of *gzip.Reader, reset before use
}

// New returns a client.
func New(o Options) *Client {
	return &Client{
		o:        o.withDefaults(),
		request:  newHeaderList(reserved, requestHeaders(), o.RequestHeaders),
		response: newHeaderList(setsCookies, responseHeaders(), o.ResponseHeaders),
		pools:    map[poolKey]*pool{},
	}
}

// Do makes one request for a module, whose name keeps its connections apart from
// those of others. Each hop is decided by rules and completed by inject, which may
// be nil. An error is a [*Refused]. When ctx ends, the connection or, with HTTP/2,
// the stream is closed at once.
func (c *Client) Do(ctx context.Context, module string, rules Rules, inject Inject, req Request) (Response, error) {
	timed, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	x := exchange{c: c, module: module, rules: rules, inject: inject, clean: req.Clean}
	if err := x.run(timed, req); err != nil {
		return x.got, c.explain(ctx, timed, x.host, err)
	}
	return x.got, nil
}
