package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hutch-run/hutch/host/address"
	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/host/trackerproxy"
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
	// Key is the configuration key that was read, if it was that.
	Key string
	// HTTP is the request, if it was one that can be read.
	HTTP *capability.Request
	// Answered: there was an answer for it, and Code says which kind. Else it was
	// refused.
	Answered bool
	Code     abi.Code
}

// maxAttempts bounds what an Observer remembers.
const maxAttempts = 10_000

// Observation is what an [Observer] answers with. Its zero value refuses everything.
type Observation struct {
	// Recording answers requests. Of exchanges with the same request each answers
	// once, in order, and the last one from then on.
	Recording []Exchange
	// Values serves operations on values that the recording does not; nil refuses
	// them.
	Values abi.Host
	// Requested is what the module asks for. Its secrets that the host would put into
	// a request unseen are part of the grant that is found.
	Requested capability.Grant
	// Config answers what is read with config_get.
	Config map[string]string
	// Refusal is why what nothing answers is refused; empty is that nothing is granted.
	Refusal string
}

// Observer stands in for a gate while nothing is granted: it does nothing, answers
// from a recording what that has, refuses the rest, and remembers all of it. It may
// be used from any goroutine, and for more than one call.
type Observer struct {
	values    abi.Host
	requested capability.Grant
	config    map[string]string
	refusal   string

	mu       sync.Mutex // guards what is below
	recorded map[string][]Exchange
	attempts []Attempt
	hops     []capability.Request // where recorded answers came from in the end
	grant    capability.Grant     // without HTTP
}

// NewObserver returns an observer.
func NewObserver(n Observation) *Observer {
	o := &Observer{values: n.Values, requested: n.Requested, config: n.Config, recorded: map[string][]Exchange{}}
	o.refusal = cmp.Or(n.Refusal, "the call is only observed: nothing is granted")
	for _, e := range n.Recording {
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
	case r.Op == abi.OpConfig:
		return o.configured(r)
	case r.Op.Capability() == "":
		return abi.Refuse(abi.Invalid, fmt.Sprintf("unknown operation %+q", abi.Cut(string(r.Op), 40)))
	}
	a := Attempt{Op: r.Op}
	response, answered := o.replay(r)
	switch {
	case answered:
	case r.Op.Capability() == abi.OpKVGet.Capability() && o.values != nil:
		response, answered = o.values(ctx, r), true
	default:
		response = abi.Refuse(abi.Denied, string(r.Op)+": "+o.refusal)
	}
	a.Answered, a.Code = answered, response.Code
	o.learn(r, a)
	return response
}

// configured answers config_get. A key that has no value counts as unanswered.
func (o *Observer) configured(r abi.Request) abi.Response {
	var key string
	if err := json.Unmarshal(r.Body, &key); err != nil {
		return abi.Refuse(abi.Invalid, "config_get: the key is no JSON string")
	}
	value, ok := o.config[key]
	response := abi.Response{Body: []byte("null")}
	if ok {
		response.Body, _ = json.Marshal(value) // strings always marshal
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.remember(Attempt{Op: r.Op, About: abi.OneLine(key, 200), Key: key, Answered: ok})
	return response
}

// remember needs the lock.
func (o *Observer) remember(a Attempt) {
	if len(o.attempts) < maxAttempts {
		o.attempts = append(o.attempts, a)
	}
}

// replay takes the next answer that was recorded.
func (o *Observer) replay(r abi.Request) (abi.Response, bool) {
	key := exchangeKey(r.Op, r.Body)
	o.mu.Lock()
	defer o.mu.Unlock()
	left := o.recorded[key]
	if len(left) == 0 {
		return abi.Response{}, false
	}
	if len(left) > 1 {
		o.recorded[key] = left[1:]
	}
	if r.Op == abi.OpHTTP {
		o.learnHop(r.Body, left[0].Answer)
	}
	return abi.Response{Code: left[0].Code, Body: left[0].Answer}, true
}

// learnHop remembers where an answer came from, if redirects led there. Those in
// between are not recorded.
func (o *Observer) learnHop(request, answer []byte) {
	var a abi.HTTPResponse
	req, err := decodeHTTP(request)
	if err != nil || json.Unmarshal(answer, &a) != nil || a.URL == "" || a.URL == req.URL || len(o.hops) >= maxAttempts {
		return
	}
	if u, err := url.Parse(a.URL); err == nil {
		method := strings.ToUpper(cmp.Or(req.Method, "GET"))
		if method == "POST" { // as redirects do
			method = "GET"
		}
		o.hops = append(o.hops, capability.Request{Method: method, URL: u})
	}
}

// learn remembers an attempt, and what it would need.
func (o *Observer) learn(r abi.Request, a Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch r.Op {
	case abi.OpHTTP:
		a.About, a.HTTP = o.learnHTTP(r.Body)
	case abi.OpKVGet, abi.OpKVSet, abi.OpKVDelete:
		o.grant.KV = &capability.KVRule{}
		var about struct{ Key, Prefix string }
		if json.Unmarshal(r.Body, &about) == nil {
			a.About = abi.OneLine(cmp.Or(about.Key, about.Prefix), abi.KVMaxKey)
		}
	case abi.OpTracker:
		a.About = o.learnTracker(r)
	case abi.OpConversation:
		o.grant.Conversation = []string{"send"}
	}
	o.remember(a)
}

func (o *Observer) learnHTTP(body []byte) (about string, asked *capability.Request) {
	req, err := decodeHTTP(body)
	if err != nil {
		return abi.OneLine(err.Error(), 200), nil
	}
	u, err := url.Parse(req.URL)
	if err != nil {
		return "a URL that cannot be read", nil
	}
	method := strings.ToUpper(cmp.Or(req.Method, "GET"))
	for _, rule := range placeholders(req, u) {
		o.learnSecret(rule)
	}
	return abi.OneLine(fmt.Sprintf("%s %s://%s%s", method, u.Scheme, u.Host, u.EscapedPath()), 300), &capability.Request{Method: method, URL: u}
}

func (o *Observer) learnTracker(r abi.Request) (about string) {
	about, scope := trackerproxy.Needs(r)
	if scope != "" && !slices.Contains(o.grant.Tracker, scope) {
		o.grant.Tracker = append(o.grant.Tracker, scope)
		slices.Sort(o.grant.Tracker)
	}
	return about
}

// learnSecret adds a rule that a guest asked for with a placeholder. One that the
// module announced says more: what stands before the value, and for which paths.
func (o *Observer) learnSecret(rule capability.SecretRule) {
	for _, q := range o.requested.Secrets {
		if sameSecret(q, rule) {
			rule.Prefix, rule.Paths = q.Prefix, q.Paths
		}
	}
	if !slices.ContainsFunc(o.grant.Secrets, func(s capability.SecretRule) bool { return sameSecret(s, rule) }) && len(o.grant.Secrets) < maxAttempts {
		o.grant.Secrets = append(o.grant.Secrets, rule)
	}
}

func sameSecret(a, b capability.SecretRule) bool {
	return a.Name == b.Name && a.Host == b.Host && strings.EqualFold(a.Header, b.Header) && a.Query == b.Query
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
	requests := slices.Clone(o.hops)
	for _, a := range o.attempts {
		if a.HTTP != nil {
			requests = append(requests, *a.HTTP)
		}
	}
	g := o.grant
	g.HTTP = capability.Least(requests)
	g.Secrets = append(slices.Clone(g.Secrets), o.unseenSecrets(requests)...)
	for i, rule := range g.HTTP {
		g.HTTP[i].AllowPrivate = privateOf(rule.Host)
	}
	return g
}

// unseenSecrets are those that the module announced and leaves to the host to put
// into its requests, of which some was made.
func (o *Observer) unseenSecrets(requests []capability.Request) (rules []capability.SecretRule) {
	for _, q := range o.requested.Secrets {
		goes := func(r capability.Request) bool {
			port, _ := strconv.Atoi(r.URL.Port())
			rule := capability.HTTPRule{Scheme: r.URL.Scheme, Host: q.Host, Methods: []string{r.Method}, Paths: q.Paths}
			if port != 0 {
				rule.Ports = []int{port}
			}
			return rule.Match(r.Method, r.URL)
		}
		known := func(s capability.SecretRule) bool { return sameSecret(s, q) }
		exact := q.Name != "" && q.Host != "" && !strings.HasPrefix(q.Host, "*")
		if exact && slices.ContainsFunc(requests, goes) && !slices.ContainsFunc(o.grant.Secrets, known) {
			q.Reason = ""
			rules = append(rules, q)
		}
	}
	return rules
}

// privateOf returns which addresses a host needs that are not public, where the
// host itself says so.
func privateOf(host string) []netip.Prefix {
	if host == "localhost" {
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || address.Public(addr) {
		return nil
	}
	return []netip.Prefix{netip.PrefixFrom(addr, addr.BitLen())}
}

// Policy is the smallest policy file that gives [Observer.Grant] to a module.
func (o *Observer) Policy(module string, b capability.Binding) string {
	return capability.Render(module, b, o.Grant())
}
