package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Options say what a [Door] lets in. The zero value lets in what comes from this machine,
// and from no page but its own.
type Options struct {
	// Closed: a token is needed though there is none, because others than this machine
	// reach the listener.
	Closed bool
	// Hosts are names and addresses that requests may ask for besides those of this
	// machine, and the address that their connection came in at.
	Hosts []string
	// Origins are those whose pages may send requests and read answers, besides our own.
	Origins []string
	// URL is the address that clients reach us by, if that is not what they ask for: a
	// proxy may have another one.
	URL string
	// Public are the paths that need no token.
	Public []string
	// Later are the paths where a WebSocket may be opened whose first frame says who sent it,
	// for [Knock]: until then nobody did.
	Later []string
	// Resources are the paths that there is metadata of: an MCP client looks for it.
	Resources []string
	// Refused is told why each request was refused, in one of few words; nil tells nobody.
	Refused func(why string)
	// Logger is told of what is refused; nil is nobody.
	Logger *slog.Logger
}

// A Door stands before every route and method of a listener.
type Door struct {
	o       Options
	keys    *Keys
	hosts   hosts
	public  []string
	strikes strikes
}

// NewDoor returns the door that these keys open.
func NewDoor(keys *Keys, o Options) *Door {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	names := slices.Clone(o.Hosts)
	if u, err := url.Parse(o.URL); err == nil {
		names = append(names, u.Hostname())
	}
	d := &Door{o: o, keys: keys, hosts: newHosts(names...), strikes: strikes{now: keys.now}}
	d.public = append(d.MetadataPaths(), o.Public...)
	return d
}

// Closed reports whether a token is needed.
func (d *Door) Closed() bool { return d.o.Closed || d.keys.Needed() }

// Wrap lets requests in that may come in. A GET is looked at as any other, because an
// answer can be a stream that a page may read.
func (d *Door) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Origin")
		origins := r.Header.Values("Origin")
		listed := len(origins) == 1 && slices.Contains(d.o.Origins, origins[0])
		switch {
		case !d.hosts.has(r):
			d.refuse(w, r, "host", http.StatusForbidden, "host not allowed: use localhost or 127.0.0.1, or a name that hutch was told of")
			return
		case len(origins) > 0 && !listed && (len(origins) > 1 || !d.ownOrigin(r, origins[0])):
			d.refuse(w, r, "origin", http.StatusForbidden, "origin not allowed: pages of other sites may not call hutch")
			return
		}
		if listed {
			share(w, origins[0])
			if isPreflight(r) {
				answerPreflight(w, r)
				return
			}
		}
		d.letIn(w, r, next)
	})
}

// letIn finds out who asks, and passes on a request that says so and has nothing on it
// that it came in with.
func (d *Door) letIn(w http.ResponseWriter, r *http.Request, next http.Handler) {
	text, err := bearer(r.Header)
	takeOff(r.Header)
	if unneeded := d.keys.unneeded(); !d.o.Closed && unneeded.Err() == nil {
		d.pass(w, r, next, Anyone(), time.Time{}, unneeded)
		return
	}
	if r.URL.RawPath == "" && slices.Contains(d.public, r.URL.Path) {
		next.ServeHTTP(w, r)
		return
	}
	var k key
	if err == nil {
		k, err = d.keys.find(text)
	}
	if errors.Is(err, errNone) && d.mayWait(r) {
		d.wait(w, r, next)
		return
	}
	if err != nil {
		d.turnAway(w, r, err)
		return
	}
	d.pass(w, r, next, k.identity(), k.Expires, k.gone)
}

// pass lets a request in for as long as what lets it in is good: one without a token until
// there is the first one, others until theirs is revoked or expires. Streams end with it.
func (d *Door) pass(w http.ResponseWriter, r *http.Request, next http.Handler, who Identity, expires time.Time, good context.Context) {
	ctx, end := context.WithCancelCause(With(r.Context(), who))
	defer end(nil)
	if !expires.IsZero() {
		var due context.CancelFunc
		ctx, due = context.WithDeadlineCause(ctx, expires, ErrEnded)
		defer due()
	}
	defer context.AfterFunc(good, func() { end(ErrEnded) })()
	next.ServeHTTP(w, r.WithContext(ctx))
}

// turnAway answers a request without a token that is good.
func (d *Door) turnAway(w http.ResponseWriter, r *http.Request, why error) {
	c := challenge{metadata: d.metadataOf(r)}
	switch {
	case errors.Is(why, errTwice):
		c.code, c.description = "invalid_request", "two tokens"
		w.Header().Set("WWW-Authenticate", c.String())
		d.refuse(w, r, "twice", http.StatusBadRequest, "two Authorization headers: send one")
		return
	case errors.Is(why, errNone):
		w.Header().Set("WWW-Authenticate", c.String())
		d.refuse(w, r, "none", http.StatusUnauthorized, "a token is needed: send the header Authorization: Bearer TOKEN")
		return
	}
	c.code, c.description = "invalid_token", "the token is not known"
	text := "the token is not known, or was revoked"
	if errors.Is(why, errExpired) {
		c.description, text = "the token has expired", "the token has expired"
	}
	w.Header().Set("WWW-Authenticate", c.String())
	if wait, first := d.strikes.add(r.RemoteAddr); wait > 0 {
		if first {
			d.o.Logger.WarnContext(r.Context(), "many wrong tokens came from one address", "from", sourceOf(r.RemoteAddr), "within", FailureWindow)
		}
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		d.refuse(w, r, "slowed", http.StatusTooManyRequests, "too many wrong tokens: wait before the next one")
		return
	}
	d.refuse(w, r, why.Error(), http.StatusUnauthorized, text)
}

// Need refuses requests whose token lacks a scope.
func (d *Door) Need(scope string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if who, ok := From(r.Context()); ok && who.Has(scope) {
				next.ServeHTTP(w, r)
				return
			}
			c := challenge{code: "insufficient_scope", description: "the token lacks a scope", scope: scope, metadata: d.metadataOf(r)}
			w.Header().Set("WWW-Authenticate", c.String())
			d.refuse(w, r, "scope", http.StatusForbidden, fmt.Sprintf("the token lacks the scope %s", scope))
		})
	}
}

// refuse tells the log no louder than debug: whoever asks could write it full.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, why string, code int, text string) {
	d.o.Refused(why)
	d.o.Logger.DebugContext(r.Context(), "request refused", "reason", text, "from", r.RemoteAddr, "host", abi.Cut(r.Host, 80),
		"origin", abi.Cut(strings.Join(r.Header["Origin"], ","), 80), "path", abi.Cut(r.URL.Path, 80))
	body, err := json.Marshal(map[string]refusal{"error": {codeOf(code), text, w.Header().Get("X-Request-Id")}})
	if err != nil { // it is three texts
		body = []byte(`{"error":{"code":"` + codeOf(code) + `"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

// A refusal is what is said of a request that is not let in, in the form that all errors
// outside of MCP have: who asks for a stream of events reads one form of them.
type refusal struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	RequestID string `json:"requestId,omitempty"`
}

// codeOf is what a status is called in a refusal.
func codeOf(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "invalid_request"
	case http.StatusUnauthorized:
		return "unauthorized"
	case http.StatusTooManyRequests:
		return "too_many_requests"
	}
	return "forbidden"
}
