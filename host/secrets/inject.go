package secrets

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/abi"
)

// Outbound is a request as a guest wrote it.
type Outbound struct {
	URL    string
	Header map[string][]string
	Body   []byte
}

// Injection puts secrets into one request, hop by hop. It belongs to the goroutine
// that makes the request.
type Injection struct {
	vault *Vault
	rules []capability.SecretRule
	out   Outbound // looked at when the first hop is made

	began  bool
	origin string // of the first hop
	left   bool   // for another origin
	used   map[string]bool
}

// Prepare begins a request, with rules that are granted for the call. It refuses one
// whose URL holds the value of a secret, whichever and in whatever form: a guest never
// has one to send. The rest is looked at by [Injection.Apply], when it was decided that
// there may be such a request: what is denied costs little.
func (v *Vault) Prepare(rules []capability.SecretRule, out Outbound) (*Injection, error) {
	v.look()
	i := &Injection{vault: v, rules: rules, out: out, used: map[string]bool{}}
	if len(out.URL) > maxURL {
		return nil, &capability.Refusal{Code: abi.Invalid, Text: fmt.Sprintf("a URL of %d bytes: at most %d are allowed", len(out.URL), maxURL)}
	}
	if err := i.scan("URL", []byte(out.URL)); err != nil {
		return nil, err
	}
	return i, nil
}

// maxURL bounds a URL as a guest writes it.
const maxURL = 8 << 10

// check looks at what a guest wrote before anything is put into it. It refuses the value
// of a secret anywhere, and the placeholder of a granted one in the body, where no rule
// can put a value.
func (i *Injection) check() error {
	for _, name := range slices.Sorted(maps.Keys(i.out.Header)) {
		if err := i.scan("header", []byte(name)); err != nil {
			return err
		}
		for _, text := range i.out.Header[name] {
			if err := i.scan("header", []byte(text)); err != nil {
				return err
			}
		}
	}
	if err := i.scan("body", i.out.Body); err != nil {
		return err
	}
	for name := range placeholders(i.out.Body) {
		if i.granted(string(name)) {
			return denied("%s is in the body: a secret is put into a header or a query parameter alone", Placeholder(string(name)))
		}
	}
	return nil
}

func (i *Injection) scan(where string, text []byte) error {
	found := i.vault.find(text)
	if len(found) == 0 {
		return nil
	}
	if name := found[0].name; i.granted(name) {
		return denied("the %s holds the value of a secret: put %s in its place", where, Placeholder(name))
	}
	return denied("the %s holds the value of a secret, which is not sent for a tool", where)
}

func (i *Injection) granted(name string) bool {
	return slices.ContainsFunc(i.rules, func(r capability.SecretRule) bool { return r.Name == name })
}

// Used returns the names of the secrets that were put in so far, sorted.
func (i *Injection) Used() []string { return slices.Sorted(maps.Keys(i.used)) }

// Apply puts secrets into one hop, after it looked at what the guest wrote: into the header h and the query of u. The first
// hop is what the guest asked for: each granted secret whose rule is about it is
// put where the rule says, and a placeholder anywhere else is refused. A redirect
// within the origin is treated alike. One to another origin gets no secret, nor
// does what comes after it: a server must not choose where its or another's
// secrets go.
//
// Where a rule is about a header or parameter, the guest leaves it out, or writes
// the placeholder, with text around it if it wants to. Errors are
// [*capability.Refusal].
func (i *Injection) Apply(u *url.URL, h http.Header) error {
	i.vault.look() // a redirect may come long after Prepare
	origin := originOf(u)
	if !i.began {
		if err := i.check(); err != nil {
			return err
		}
		i.began, i.origin, i.out = true, origin, Outbound{}
	}
	i.left = i.left || origin != i.origin
	if i.left {
		strip(u, h)
		return nil
	}
	if err := misplaced(u); err != nil {
		return err
	}
	rules := rulesFor(i.rules, func(r capability.SecretRule) bool { return about(r, u) })
	if err := i.fillHeader(u, h, rules); err != nil {
		return err
	}
	if err := i.addHeader(h, rules); err != nil {
		return err
	}
	pairs := splitQuery(u.RawQuery)
	if err := i.fillQuery(u, pairs, rules); err != nil {
		return err
	}
	pairs, err := i.addQuery(pairs, rules)
	if err != nil {
		return err
	}
	u.RawQuery = strings.Join(pairs, "&")
	if len(i.used) > 0 && hasHeader(h, "Range") {
		return denied("a request that a secret is put into asks for the whole, or a value could be read in parts: leave the header Range out")
	}
	return nil
}

func splitQuery(raw string) []string {
	if raw == "" {
		return nil
	}
	return strings.Split(raw, "&")
}

func originOf(u *url.URL) string {
	return u.Scheme + "://" + u.Hostname() + ":" + strconv.Itoa(port(u))
}

func port(u *url.URL) int {
	if n, err := strconv.Atoi(u.Port()); err == nil {
		return n
	}
	if u.Scheme == "http" {
		return 80
	}
	return 443
}

// about reports whether a rule is about the host and path of u. Scheme, port and
// method were decided by the rules for HTTP.
func about(r capability.SecretRule, u *url.URL) bool {
	if r.Host == "" || r.Name == "" || (r.Header == "") == (r.Query == "") {
		return false
	}
	return capability.HTTPRule{
		Scheme: u.Scheme, Host: r.Host, Methods: []string{http.MethodGet}, Ports: []int{port(u)}, Paths: r.Paths,
	}.Match(http.MethodGet, u)
}

// misplaced refuses placeholders where no rule can put a value.
func misplaced(u *url.URL) error {
	password, _ := u.User.Password()
	for _, part := range []string{u.Opaque, u.User.Username(), password, u.Host, u.Path, u.Fragment} {
		if names := Placeholders(part); len(names) > 0 {
			return denied("%s is in the URL before its query: a secret is put into a header or a query parameter alone", Placeholder(names[0]))
		}
	}
	return nil
}

// strip takes out what asks for secrets.
func strip(u *url.URL, h http.Header) {
	maps.DeleteFunc(h, func(_ string, values []string) bool {
		return slices.ContainsFunc(values, func(s string) bool { return strings.Contains(s, scheme) })
	})
	u.RawQuery = strings.Join(slices.DeleteFunc(splitQuery(u.RawQuery), func(pair string) bool {
		_, value := splitPair(pair)
		return strings.Contains(value, scheme)
	}), "&")
}

func (i *Injection) fillHeader(u *url.URL, h http.Header, rules []capability.SecretRule) error {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		mine := rulesFor(rules, func(r capability.SecretRule) bool { return strings.EqualFold(r.Header, name) })
		for at, text := range h[name] {
			value, err := i.fill(u, "header "+i.shown(name), text, mine)
			if err != nil {
				return err
			}
			h[name][at] = value
		}
	}
	return nil
}

func (i *Injection) addHeader(h http.Header, rules []capability.SecretRule) error {
	for at, r := range rules {
		if r.Header == "" || hasHeader(h, r.Header) {
			continue
		}
		if err := unambiguous(rules[at+1:], r, "header "+r.Header); err != nil {
			return err
		}
		value, err := i.value(r)
		if err != nil {
			return err
		}
		h.Set(r.Header, r.Prefix+value)
	}
	return nil
}

const maxShown = 100

// shown quotes what stands in a request, which a server may have written that sends
// values back. What is cut first is no longer found.
func (i *Injection) shown(text string) string {
	clean, _ := i.vault.Redactor().Text(text)
	return strconv.Quote(abi.Cut(clean, maxShown))
}

func rulesFor(rules []capability.SecretRule, is func(capability.SecretRule) bool) (mine []capability.SecretRule) {
	for _, r := range rules {
		if is(r) {
			mine = append(mine, r)
		}
	}
	return mine
}

func hasHeader(h http.Header, name string) bool {
	for key := range h {
		if strings.EqualFold(key, name) {
			return true
		}
	}
	return false
}

// unambiguous refuses to choose between two secrets for one place.
func unambiguous(others []capability.SecretRule, r capability.SecretRule, place string) error {
	for _, o := range others {
		if o.Name != r.Name && strings.EqualFold(o.Header, r.Header) && o.Query == r.Query {
			return denied("two secrets are granted for the %s: write %s or %s into it", place, Placeholder(r.Name), Placeholder(o.Name))
		}
	}
	return nil
}

// fill returns text, which the guest wrote into a place that rules are about, with
// the values of its placeholders.
func (i *Injection) fill(u *url.URL, place, text string, rules []capability.SecretRule) (string, error) {
	names := Placeholders(text)
	if len(names) == 0 {
		return i.withoutPlaceholder(place, text, rules)
	}
	for _, name := range names {
		at := slices.IndexFunc(rules, func(r capability.SecretRule) bool { return r.Name == name })
		if at < 0 {
			return "", denied("%s is not granted in the %s for host %s and this path", Placeholder(abi.Cut(name, maxShown)), place, i.shown(u.Hostname()))
		}
		if times(text, name) > 1 {
			return "", denied("%s is in the %s more than once: write it once", Placeholder(name), place)
		}
		value, err := i.value(rules[at])
		if err != nil {
			return "", err
		}
		if text == Placeholder(name) {
			return rules[at].Prefix + value, nil
		}
		text = placeholder.ReplaceAllStringFunc(text, func(found string) string {
			if found == Placeholder(name) {
				return value
			}
			return found
		})
	}
	return text, nil
}

func times(text, name string) (n int) {
	for found := range placeholders([]byte(text)) {
		if string(found) == name {
			n++
		}
	}
	return n
}

// withoutPlaceholder lets a text through in a place that no rule is about. In one
// that is the host's, a guest could act as somebody else; only what the host put
// there itself, and a server sent back in a redirect, may stand.
func (i *Injection) withoutPlaceholder(place, text string, rules []capability.SecretRule) (string, error) {
	if len(rules) == 0 {
		return text, nil
	}
	for _, r := range rules {
		if value, ok := i.vault.known(r.Name); ok && text == r.Prefix+value.Reveal() && i.used[r.Name] {
			return text, nil
		}
	}
	return "", denied("the %s is set by the host: leave it out, or write %s", place, Placeholder(rules[0].Name))
}

// value returns the value that r puts in. It is no text that would end the line of
// a header.
func (i *Injection) value(r capability.SecretRule) (string, error) {
	value, ok := i.vault.known(r.Name)
	if !ok || value.Reveal() == "" {
		return "", &capability.Refusal{Code: abi.Unavailable, Text: fmt.Sprintf(
			"the secret %s is not set; the operator sets it with: hutch secrets set %s", r.Name, r.Name)}
	}
	text := value.Reveal()
	if r.Header != "" && strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", &capability.Refusal{Code: abi.Unavailable, Text: fmt.Sprintf(
			"the secret %s cannot stand in a header: allowed is printable ASCII on one line", r.Name)}
	}
	i.used[r.Name] = true
	return text, nil
}

// fillQuery leaves all parameters byte for byte as they are that it has nothing to
// put into.
func (i *Injection) fillQuery(u *url.URL, pairs []string, rules []capability.SecretRule) error {
	for at, pair := range pairs {
		name, text := splitPair(pair)
		if names := Placeholders(name); len(names) > 0 {
			return denied("%s is the name of a query parameter: a secret is put into its value", Placeholder(names[0]))
		}
		mine := rulesFor(rules, func(r capability.SecretRule) bool { return r.Query != "" && r.Query == name })
		filled, err := i.fill(u, "query parameter "+i.shown(name), text, mine)
		if err != nil {
			return err
		}
		if filled != text {
			pairs[at] = url.QueryEscape(name) + "=" + url.QueryEscape(filled)
		}
	}
	return nil
}

func (i *Injection) addQuery(pairs []string, rules []capability.SecretRule) ([]string, error) {
	for at, r := range rules {
		if r.Query == "" || slices.ContainsFunc(pairs, func(pair string) bool { name, _ := splitPair(pair); return name == r.Query }) {
			continue
		}
		if err := unambiguous(rules[at+1:], r, "query parameter "+r.Query); err != nil {
			return nil, err
		}
		value, err := i.value(r)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, url.QueryEscape(r.Query)+"="+url.QueryEscape(r.Prefix+value))
	}
	return pairs, nil
}

// splitPair reads one parameter. What cannot be unescaped is taken as it is.
func splitPair(pair string) (name, value string) {
	name, value, _ = strings.Cut(pair, "=")
	return unescapedQuery(name), unescapedQuery(value)
}

func unescapedQuery(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

func denied(format string, args ...any) *capability.Refusal {
	return &capability.Refusal{Code: abi.Denied, Text: fmt.Sprintf(format, args...)}
}
