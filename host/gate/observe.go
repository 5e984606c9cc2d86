package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
)

// Exchange is one operation with its answer, as a recording keeps it. It holds no
// secret: a guest writes placeholders, and answers have lost the values.
type Exchange struct {
	Op      abi.Op          `json:"op"`
	Request json.RawMessage `json:"request"`
	Code    abi.Code        `json:"code,omitempty"`
	Answer  json.RawMessage `json:"answer"`
}

// Recorded returns a host that serves as next does, and hands each exchange to keep
// before the guest gets its answer. What is no JSON is not kept.
func Recorded(next abi.Host, keep func(Exchange)) abi.Host {
	return func(ctx context.Context, r abi.Request) abi.Response {
		response := next(ctx, r)
		if json.Valid(r.Body) && json.Valid(response.Body) {
			keep(Exchange{r.Op, slices.Clone(r.Body), response.Code, slices.Clone(response.Body)})
		}
		return response
	}
}

// Attempt is one operation that a guest asked for under observation.
type Attempt struct {
	Op abi.Op
	// About says what it was about, on one line: method and URL without what stands
	// behind the path, or a key.
	About string
	// Answered: the recording had an answer for it. Else it was refused.
	Answered bool
}

// maxAttempts bounds what an Observer remembers.
const maxAttempts = 10_000

// Observer stands in for a gate while nothing is granted: it does nothing, answers
// from a recording what that has, refuses the rest, and remembers all of it. It may
// be used from any goroutine, and for more than one call.
type Observer struct {
	mu       sync.Mutex
	recorded map[string][]Exchange
	attempts []Attempt
	requests []capability.Request
	grant    capability.Grant // without HTTP
}

// NewObserver returns an observer with a recording. Of exchanges with the same
// request each answers once, in order, and the last one from then on.
func NewObserver(recording []Exchange) *Observer {
	o := &Observer{recorded: map[string][]Exchange{}}
	for _, e := range recording {
		key := exchangeKey(e.Op, e.Request)
		o.recorded[key] = append(o.recorded[key], e)
	}
	return o
}

// exchangeKey is the same for requests that mean the same.
func exchangeKey(op abi.Op, body []byte) string {
	if root, err := rawjson.Parse(body, rawjson.MaxDepth); err == nil {
		body = root.Canonical().Compact()
	}
	return string(op) + " " + string(body)
}

// Host is an [abi.Host].
func (o *Observer) Host(ctx context.Context, r abi.Request) abi.Response {
	switch {
	case ctx.Err() != nil:
		return abi.Refuse(abi.Cancelled, string(known(r.Op))+": the call has ended")
	case r.Op.Capability() == "":
		return abi.Refuse(abi.Invalid, fmt.Sprintf("unknown operation %+q", abi.Cut(string(r.Op), 40)))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	a := Attempt{Op: r.Op, About: o.learn(r)}
	key := exchangeKey(r.Op, r.Body)
	response := abi.Refuse(abi.Denied, string(r.Op)+": the call is only observed: nothing is granted")
	if left := o.recorded[key]; len(left) > 0 {
		a.Answered, response = true, abi.Response{Code: left[0].Code, Body: left[0].Answer}
		if len(left) > 1 {
			o.recorded[key] = left[1:]
		}
	}
	if len(o.attempts) < maxAttempts {
		o.attempts = append(o.attempts, a)
	}
	return response
}

// learn adds what a request would need to the grant, and says what it is about.
func (o *Observer) learn(r abi.Request) string {
	switch r.Op {
	case abi.OpHTTP:
		return o.learnHTTP(r.Body)
	case abi.OpKVGet, abi.OpKVSet, abi.OpKVDelete:
		o.grant.KV = &capability.KVRule{}
		var about struct{ Key, Prefix string }
		if json.Unmarshal(r.Body, &about) != nil {
			return ""
		}
		return abi.OneLine(cmp.Or(about.Key, about.Prefix), abi.KVMaxKey)
	case abi.OpConversation:
		o.grant.Conversation = []string{"send"}
	}
	return ""
}

func (o *Observer) learnHTTP(body []byte) string {
	req, err := decodeHTTP(body)
	if err != nil {
		return abi.OneLine(err.Error(), 200)
	}
	u, err := url.Parse(req.URL)
	if err != nil {
		return "a URL that cannot be read"
	}
	method := strings.ToUpper(cmp.Or(req.Method, "GET"))
	if len(o.requests) < maxAttempts {
		o.requests = append(o.requests, capability.Request{Method: method, URL: u})
	}
	for _, rule := range placeholders(req, u) {
		if !slices.ContainsFunc(o.grant.Secrets, func(s capability.SecretRule) bool {
			return s.Name == rule.Name && s.Host == rule.Host && s.Header == rule.Header && s.Query == rule.Query
		}) {
			o.grant.Secrets = append(o.grant.Secrets, rule)
		}
	}
	return abi.OneLine(fmt.Sprintf("%s %s://%s%s", method, u.Scheme, u.Host, u.EscapedPath()), 300)
}

// placeholders returns the rules that would put a value wherever a request has a
// placeholder.
func placeholders(req fetch.Request, u *url.URL) (rules []capability.SecretRule) {
	host, err := capability.CanonicalHost(u.Hostname())
	if err != nil {
		return nil
	}
	for name, values := range req.Header {
		for _, secret := range secrets.Placeholders(strings.Join(values, " ")) {
			rules = append(rules, capability.SecretRule{Name: secret, Header: name, Host: host})
		}
	}
	for name, values := range u.Query() {
		for _, secret := range secrets.Placeholders(strings.Join(values, " ")) {
			rules = append(rules, capability.SecretRule{Name: secret, Query: name, Host: host})
		}
	}
	slices.SortFunc(rules, func(a, b capability.SecretRule) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Header, b.Header), cmp.Compare(a.Query, b.Query))
	})
	return rules
}

// Attempts returns what was asked for, in order, at most the first 10,000.
func (o *Observer) Attempts() []Attempt {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.attempts)
}

// Grant is the smallest one that lets through what was attempted, as far as it can
// be told from that. A name that leads to an address that is not public needs
// allow_private, which a person has to add: it was not looked up.
func (o *Observer) Grant() capability.Grant {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := o.grant
	g.Secrets = slices.Clone(g.Secrets)
	g.HTTP = capability.Least(o.requests)
	for i, rule := range g.HTTP {
		if addr, err := netip.ParseAddr(rule.Host); err == nil && (!addr.IsGlobalUnicast() || addr.IsPrivate()) {
			g.HTTP[i].AllowPrivate = []netip.Prefix{netip.PrefixFrom(addr, addr.BitLen())}
		}
	}
	return g
}

// Policy is the smallest policy file that gives [Observer.Grant] to a module.
func (o *Observer) Policy(module string, b capability.Binding) string {
	return capability.Render(module, b, o.Grant())
}
