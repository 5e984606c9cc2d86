// Package trackerproxy makes guests' tracker calls with the host's credentials and the
// agent's identity.
//
// A guest names a method, a path of the tracker's interface and a body, as
// [abi.TrackerRequest] says. The [Proxy] finds the one route that this is, sees whether a
// granted scope covers it, builds the URL, and adds the token of whoever the call is for.
// Nothing that a guest sends becomes part of a host, a header or another path.
//
// A scope may be limited to a project, as in steps:write@team-board. Then the proxy first
// asks the tracker, in the same name, to which project a request belongs, and sends the
// request with the ids that the tracker named.
//
// A Proxy may be used from any goroutine and starts none.
package trackerproxy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Client sends a request. It follows no redirect, since the token is meant for one tracker,
// and it may send one again that failed: every POST has an Idempotency-Key.
// [http.Client] is one.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// Account is a tracker, and as whom it is asked.
type Account struct {
	// Base is where the interface is, such as https://tracker.example/api/v1.
	Base *url.URL
	// Token goes into the header Authorization. The tracker must know it as the member that
	// the call is for.
	Token string
	// Client sends the requests; nil is the proxy's own, which does not repeat any.
	Client Client
}

// Options say where requests go.
type Options struct {
	// Account returns the account of a caller; an error says that there is none. It is asked
	// for every operation, so a change holds at once.
	Account func(ctx context.Context, a Access) (Account, error)
	// MaxResponse is the largest answer, in bytes. Default 16 MiB.
	MaxResponse int64
	// Timeout bounds each request. Default 30 s.
	Timeout time.Duration
	// Logger gets what a guest must not know. Default: nothing is logged.
	Logger *slog.Logger
}

// Access is for whom an operation is, and what is granted. Nothing in it comes from the
// guest.
type Access struct {
	// Principal is accountable; Agent is which of its agents asks, and may be empty.
	Principal, Agent string
	// Module and Tool are what asks.
	Module, Tool string
	// Scopes are granted, such as tasks:read or steps:write@team-board.
	Scopes []string
}

// Proxy serves tracker_request. It is made by [New].
type Proxy struct {
	o   Options
	own *http.Client
}

// New returns a proxy.
func New(o Options) *Proxy {
	o.MaxResponse = cmp.Or(o.MaxResponse, 16<<20)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Proxy{o: o, own: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// A refusal is what the guest is told.
type refusal struct {
	code abi.Code
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code abi.Code, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// Serve does one operation. It answers anything but tracker_request with a refusal; so it does
// what no granted scope lets through, a path that is no route, and a tracker that does not
// answer (tracker_unavailable). What the tracker itself refuses is an answer, with its status.
func (p *Proxy) Serve(ctx context.Context, a Access, r abi.Request) abi.Response {
	if r.Op != abi.OpTracker {
		return abi.Refuse(abi.Invalid, "no operation on a tracker")
	}
	out, err := p.serve(ctx, a, r.Body)
	if err == nil {
		var body []byte
		if body, err = json.Marshal(out); err == nil {
			return abi.Response{Body: body}
		}
	}
	var known *refusal
	switch {
	case errors.As(err, &known):
		return abi.Refuse(known.code, "tracker_request: "+known.text)
	case ctx.Err() != nil:
		return abi.Refuse(abi.Cancelled, "tracker_request: the call has ended")
	}
	p.o.Logger.ErrorContext(ctx, "the tracker did not serve a module", "module", a.Module, "tool", a.Tool, "principal", a.Principal, "err", err)
	return abi.Refuse(abi.Unavailable, "tracker_request: tracker_unavailable: the tracker cannot be reached now: try again later")
}

// Needs returns what one operation is about, on one line, and the scope that it needs; the
// scope is empty for one that no scope lets through.
func Needs(r abi.Request) (about, scope string) {
	in, found, _, err := read(r.Body)
	about = abi.OneLine(in.Method+" "+in.Path, 300)
	if r.Op != abi.OpTracker || err != nil {
		return about, ""
	}
	return about, found.scope
}

// read finds the route that a guest asks for.
func read(body []byte) (in abi.TrackerRequest, r route, segments []string, err error) {
	if in, err = decode(body); err != nil {
		return in, r, nil, err
	}
	if segments, err = parsePath(in.Path); err != nil {
		return in, r, nil, refuse(abi.Invalid, "%s", err)
	}
	r, ok := match(in.Method, segments)
	if !ok {
		err = refuse(abi.Denied, "%s %s is open to no module", abi.OneLine(in.Method, 10), abi.OneLine(in.Path, 100))
	}
	return in, r, segments, err
}

func (p *Proxy) serve(ctx context.Context, a Access, body []byte) (abi.TrackerResponse, error) {
	var none abi.TrackerResponse
	in, r, segments, err := read(body)
	if err != nil {
		return none, err
	}
	granted := grantedBy(a.Scopes, r.scope)
	if granted.none() {
		return none, refuse(abi.Denied, "%s %s needs the scope %s, which is not granted to this tool", r.method, r.path, r.scope)
	}
	account, err := p.account(ctx, a)
	if err != nil {
		return none, err
	}
	s := &sending{proxy: p, account: account, granted: granted, route: r, segments: segments, query: in.Query, body: in.Body}
	return s.do(ctx)
}

func (p *Proxy) account(ctx context.Context, a Access) (Account, error) {
	if p.o.Account == nil {
		return Account{}, refuse(abi.Unavailable, "tracker_unavailable: no tracker is set up here")
	}
	account, err := p.o.Account(ctx, a)
	if err == nil && account.Base == nil {
		err = errors.New("an account has no address")
	}
	if account.Client == nil {
		account.Client = p.own
	}
	return account, err
}

// decode reads what a guest sent. Names that are not known are refused, and so is what is
// behind the value.
func decode(body []byte) (abi.TrackerRequest, error) {
	var in abi.TrackerRequest
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, refuse(abi.Invalid, "the request is not as it must be: method, path, query with texts, and body are known")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return in, refuse(abi.Invalid, "there is more behind the request")
	}
	for name, value := range in.Query {
		if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return in, refuse(abi.Invalid, "query: %q is no parameter's name", abi.Cut(name, 64))
		}
		if err := checkRef(value); err != nil {
			return in, refuse(abi.Invalid, "query: %s %s", name, err)
		}
	}
	switch {
	case len(in.Body) == 0 || string(in.Body) == "null":
		in.Body = nil
	case in.Method == http.MethodGet:
		return in, refuse(abi.Invalid, "a GET has no body")
	case in.Body[0] != '{':
		return in, refuse(abi.Invalid, "the body must be an object")
	}
	return in, nil
}

// exchange asks the tracker for one thing. An answer that is no JSON becomes null.
func (s *sending) exchange(ctx context.Context, method, path string, query map[string]string, body []byte) (abi.TrackerResponse, error) {
	var out abi.TrackerResponse
	ctx, cancel := context.WithTimeout(ctx, s.proxy.o.Timeout)
	defer cancel()
	r, err := s.request(ctx, method, path, query, body)
	if err != nil {
		return out, err
	}
	answer, err := s.account.Client.Do(r)
	if err != nil {
		return out, withoutURL(err)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, s.proxy.o.MaxResponse+1))
	if closeErr := answer.Body.Close(); err == nil {
		err = closeErr
	}
	switch {
	case err != nil:
		return out, err
	case int64(len(raw)) > s.proxy.o.MaxResponse:
		return out, refuse(abi.Limit, "the answer has more than %d bytes: ask for less, with limit", s.proxy.o.MaxResponse)
	case answer.StatusCode == http.StatusUnauthorized:
		s.proxy.o.Logger.ErrorContext(ctx, "a tracker does not know the token that is set up for it", "tracker", s.account.Base.Host)
		return out, refuse(abi.Unavailable, "tracker_unavailable: the tracker does not take the token that is set up for it: whoever runs hutch has to set another")
	case answer.StatusCode >= 300 && answer.StatusCode < 400 || answer.StatusCode < 200:
		return out, fmt.Errorf("the tracker answers %d", answer.StatusCode)
	case s.account.Token != "" && bytes.Contains(raw, []byte(s.account.Token)):
		return out, errors.New("the tracker sends the token back")
	}
	if !json.Valid(raw) {
		raw = []byte("null")
	}
	return abi.TrackerResponse{Status: answer.StatusCode, Body: raw}, nil
}

// withoutURL leaves the address, which may be nobody's business, to the log's reader in short.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func (s *sending) request(ctx context.Context, method, path string, query map[string]string, body []byte) (*http.Request, error) {
	values := url.Values{}
	for name, value := range query {
		values.Set(name, value)
	}
	target := strings.TrimSuffix(s.account.Base.String(), "/") + path
	if len(values) > 0 {
		target += "?" + values.Encode()
	}
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, target, content)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if s.account.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.account.Token)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPost {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	return r, nil
}
