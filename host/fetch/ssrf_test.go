package fetch_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/protocol/abi"
)

func anyPublic() capability.HTTPRule {
	return capability.HTTPRule{Scheme: "http", Host: "*", Methods: allMethods(), Ports: []int{80, 443, 8080}}
}

// Every spelling of a host that some program somewhere reads as loopback, with one
// site granted and with all public ones. A resolver that answers anything with
// loopback makes sure that it is not the resolver who refuses.
func TestS01_S06_HostSpellings(t *testing.T) {
	numeric := []string{"127.0.0.1", "127.0.1", "0x7f.0.0.1", "2130706433", "0", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1.",
		"127.000.000.001", "1.2.3.4.5", "256.1.1.1", "foo.0x7f", "foo.1", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:7f00:1]",
		"[::ffff:127.0.0.1]", "[::127.0.0.1]", "[::1%25lo]", "[fe80::1%25eth0]", "127.0.0.1%00.example.com", "①②⑦.⓪.⓪.①", "127。0。0。1"}
	userinfo := []string{"example.com@127.0.0.1", "example.com:80@127.0.0.1", "example.com%40x@127.0.0.1"}
	names := []string{"localhost", "LOCALHOST", "localhost.", "foo.localhost", "lOcAlHoSt", "ｌocalhost", "xn--example.com", "example.com.evil.test",
		"evilexample.com", "www.example.com", "exa mple.com", "example.com\\.evil.test", "example.com%2eevil.test"}
	for _, spelling := range slices.Concat(numeric, userinfo, names) {
		for kind, rules := range map[string]granted{
			"one":      {{Scheme: "http", Host: "example.com", Methods: allMethods()}},
			"public":   {anyPublic()},
			"wildcard": {{Scheme: "http", Host: "*.com", Methods: allMethods()}, {Scheme: "http", Host: "*.localhost", Methods: allMethods()}},
		} {
			n, d := everything("127.0.0.1"), &dials{}
			c := newClient(t, fetch.Options{Resolver: n, Dial: d.dial})
			_, err := c.Do(t.Context(), "m", rules, nil, get("http://"+spelling+"/"))
			if got := refusal(t, err, codeOf(err), ""); got.Code != abi.Denied && got.Code != abi.Invalid {
				t.Errorf("%s, %s: %s: %s", spelling, kind, got.Code, got.Text)
			}
			if len(d.addresses()) > 0 {
				t.Errorf("%s, %s: dialled %v", spelling, kind, d.addresses())
			}
			if slices.Contains(slices.Concat(numeric, userinfo), spelling) && len(n.asked()) > 0 {
				t.Errorf("%s, %s: asked for %v", spelling, kind, n.asked())
			}
		}
	}
}

// The one host that is meant goes through in each of its own spellings, and only
// the canonical one is seen by the resolver and the server.
func TestS01_OneCanonicalHost(t *testing.T) {
	seen := make(chan string, 1)
	s := server(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Host })
	for spelling, want := range map[string]string{
		"EXAMPLE.com": "example.com", "example.com.": "example.com", "example.com:80": "example.com", "example.com:": "example.com",
		"example.com:0080": "example.com", "BÜCHER.example": "xn--bcher-kva.example", "b%C3%BCcher.example": "xn--bcher-kva.example",
		"example.com:8080": "example.com:8080",
	} {
		n, d := everything("93.184.215.14"), &dials{to: s.Listener.Addr().String()}
		c := newClient(t, fetch.Options{Resolver: n, Dial: d.dial})
		rules := granted{{Scheme: "http", Host: "example.com", Ports: []int{80, 8080}}, {Scheme: "http", Host: "xn--bcher-kva.example"}}
		if _, err := c.Do(t.Context(), "m", rules, nil, get("http://"+spelling+"/")); err != nil {
			t.Errorf("%s: %v", spelling, err)
			continue
		}
		host, _, _ := strings.Cut(want, ":")
		if got := <-seen; got != want || !slices.Equal(n.asked(), []string{host + "."}) {
			t.Errorf("%s: the server saw %s, the resolver %v; want %s", spelling, got, n.asked(), want)
		}
	}
}

// everythingResolver answers every name with one address.
type everythingResolver struct {
	names
	addr string
}

func everything(addr string) *everythingResolver { return &everythingResolver{addr: addr} }

func (e *everythingResolver) asked() []string { return e.queries() }

func (e *everythingResolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names.asked = append(e.names.asked, host)
	return []netip.Addr{netip.MustParseAddr(e.addr)}, nil
}

func TestS03_AllowedNameThatResolvesInside(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "169.254.169.254", "10.0.0.1", "fd00:ec2::254", "192.168.1.1", "100.100.100.200", "168.63.129.16", "::1", "fe80::1"} {
		for _, rule := range []capability.HTTPRule{
			{Scheme: "http", Host: "allowed.test"},
			anyPublic(),
			{Scheme: "http", Host: "*", AllowPrivate: prefixes("0.0.0.0/0", "::/0")}, // "*" is for public addresses, whatever stands beside it
		} {
			d := &dials{}
			c := newClient(t, fetch.Options{Resolver: resolves(addr, "allowed.test"), Dial: d.dial})
			got, err := c.Do(t.Context(), "m", granted{rule}, nil, get("http://allowed.test/"))
			refused := refusal(t, err, abi.Denied, "blocked_ip")
			if strings.Contains(refused.Text, addr) {
				t.Errorf("the guest is told %s: %s", addr, refused.Text)
			}
			if got.Addr.String() != addr || len(d.addresses()) > 0 {
				t.Errorf("%s: recorded %s, dialled %v", addr, got.Addr, d.addresses())
			}
		}
	}
}

// An address of this machine is not public even where it looks so: a service that
// the firewall keeps from others would be open to a guest.
func TestS03_OwnAddresses(t *testing.T) {
	own := func() ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("2600::1")}, nil
	}
	for _, addr := range []string{"8.8.8.8", "2600::1", "::ffff:8.8.8.8"} {
		d := &dials{}
		c := newClient(t, fetch.Options{Resolver: resolves(addr, "allowed.test"), Dial: d.dial, Own: own})
		rule := capability.HTTPRule{Scheme: "http", Host: "allowed.test"}
		_, err := c.Do(t.Context(), "m", granted{rule}, nil, get("http://allowed.test/"))
		refusal(t, err, abi.Denied, "blocked_ip")
		rule.AllowPrivate = prefixes("8.8.8.8/32", "2600::1/128")
		_, err = c.Do(t.Context(), "m", granted{rule}, nil, get("http://allowed.test/"))
		refusal(t, err, abi.Unavailable, "")
		if len(d.addresses()) != 1 {
			t.Errorf("%s: dialled %v, want one, under the second rule", addr, d.addresses())
		}
	}
}

func TestS03_OwnAddressesUnknown(t *testing.T) {
	d := &dials{}
	c := newClient(t, fetch.Options{Resolver: resolves("8.8.8.8", "allowed.test"), Dial: d.dial,
		Own: func() ([]netip.Addr, error) { return nil, net.ErrClosed }})
	_, err := c.Do(t.Context(), "m", granted{anyPublic()}, nil, get("http://allowed.test/"))
	refusal(t, err, abi.Unavailable, "cannot be listed")
	if len(d.addresses()) > 0 {
		t.Errorf("dialled %v", d.addresses())
	}
}

func TestS05_UnspecifiedAndMapped(t *testing.T) {
	for _, rawURL := range []string{"http://[::]/", "http://0.0.0.0/", "http://[::ffff:7f00:1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:0:0]/"} {
		d := &dials{}
		c := newClient(t, fetch.Options{Dial: d.dial})
		rules := granted{anyPublic(), {Scheme: "http", Host: "::"}, {Scheme: "http", Host: "0.0.0.0", AllowPrivate: prefixes("0.0.0.0/0")},
			{Scheme: "http", Host: "::ffff:7f00:1"}, {Scheme: "http", Host: "127.0.0.1"}}
		_, err := c.Do(t.Context(), "m", rules, nil, get(rawURL))
		refusal(t, err, abi.Denied, "")
		if len(d.addresses()) > 0 {
			t.Errorf("%s: dialled %v", rawURL, d.addresses())
		}
	}
	for _, addr := range []string{"::", "0.0.0.0", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::ffff:10.0.0.1", "255.255.255.255", "ff02::1"} {
		d := &dials{}
		c := newClient(t, fetch.Options{Resolver: resolves(addr, "allowed.test"), Dial: d.dial})
		_, err := c.Do(t.Context(), "m", granted{anyPublic()}, nil, get("http://allowed.test/"))
		refusal(t, err, abi.Denied, "blocked_ip")
		if len(d.addresses()) > 0 {
			t.Errorf("%s: dialled %v", addr, d.addresses())
		}
	}
}

// A resolver that answers with no address at all has nothing dialled.
func TestS05_NoAddress(t *testing.T) {
	for answer, code := range map[resolverOf]abi.Code{{}: abi.Unavailable, {1}: abi.Denied} {
		d := &dials{}
		c := newClient(t, fetch.Options{Resolver: answer, Dial: d.dial})
		_, err := c.Do(t.Context(), "m", granted{anyPublic()}, nil, get("http://allowed.test/"))
		refusal(t, err, code, "address")
		if len(d.addresses()) > 0 {
			t.Errorf("dialled %v", d.addresses())
		}
	}
}

// resolverOf answers with so many addresses that are none.
type resolverOf struct{ n int }

func (r resolverOf) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return make([]netip.Addr, r.n), nil
}

// A real DNS server answers with a public address once and with loopback from then
// on. One query is sent, its answer is dialled, and the name stays in the request.
func TestS07_ResolvedOnce(t *testing.T) {
	seen := make(chan string, 1)
	s := server(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Host })
	ns := newNameserver(t, func(n int, _ string) netip.Addr {
		if n == 0 {
			return netip.MustParseAddr("93.184.215.14")
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	d := &dials{to: s.Listener.Addr().String()}
	c := newClient(t, fetch.Options{Resolver: ns.resolver(), Dial: d.dial})
	got, err := c.Do(t.Context(), "m", granted{anyPublic()}, nil, get("http://rebind.test:8080/"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ns.queries(), []string{"rebind.test."}) || !slices.Equal(d.addresses(), []string{"93.184.215.14:8080"}) {
		t.Errorf("asked for %v, dialled %v", ns.queries(), d.addresses())
	}
	if host := <-seen; host != "rebind.test:8080" || got.Addr.String() != "93.184.215.14" {
		t.Errorf("the server saw %s, recorded is %s", host, got.Addr)
	}
	c.Forget("m")
	_, err = c.Do(t.Context(), "m", granted{anyPublic()}, nil, get("http://rebind.test:8080/"))
	refusal(t, err, abi.Denied, "blocked_ip")
	if len(d.addresses()) != 1 {
		t.Errorf("dialled %v", d.addresses())
	}
}

// Of several addresses only those that passed are dialled.
func TestS07_MixedAnswers(t *testing.T) {
	s := server(t, func(http.ResponseWriter, *http.Request) {})
	n := &names{known: map[string][][]string{"mixed.test.": {{"127.0.0.1", "10.0.0.1", "93.184.215.14", "::1"}}}}
	d := &dials{to: s.Listener.Addr().String()}
	c := newClient(t, fetch.Options{Resolver: n, Dial: d.dial})
	if _, err := c.Do(t.Context(), "m", granted{anyPublic()}, nil, get("http://mixed.test/")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.addresses(), []string{"93.184.215.14:80"}) {
		t.Errorf("dialled %v", d.addresses())
	}
}

// Only the host that would really be asked decides.
func TestS10_UserinfoTricks(t *testing.T) {
	for rawURL, code := range map[string]abi.Code{
		"http://allowed.test@evil.test/":          abi.Denied,
		"http://allowed.test:80@evil.test/":       abi.Denied,
		"http://evil.test#@allowed.test/":         abi.Denied,
		"http://evil.test?@allowed.test/":         abi.Denied,
		"http://evil.test/@allowed.test/":         abi.Denied,
		"http://allowed.test\\@evil.test/":        abi.Invalid,
		"http://evil.test\\@allowed.test/":        abi.Invalid,
		"http://user:pass@allowed.test/":          abi.Denied,
		"http://@allowed.test/":                   abi.Denied,
		"http://allowed.test%23@evil.test/":       abi.Denied,
		"http:///allowed.test@evil.test/":         abi.Invalid,
		"http:allowed.test@evil.test":             abi.Invalid,
		"//allowed.test@evil.test/":               abi.Denied,
		"http://allowed.test:80:80@evil.test/":    abi.Denied,
		"http://evil.test\t@allowed.test/":        abi.Invalid,
		"http://allowed.test%A0/":                 abi.Denied,
		"http://allowed.test\r\nHost: evil.test/": abi.Invalid,
	} {
		n, d := resolves("93.184.215.14", "allowed.test", "evil.test"), &dials{}
		c := newClient(t, fetch.Options{Resolver: n, Dial: d.dial})
		_, err := c.Do(t.Context(), "m", granted{{Scheme: "http", Host: "allowed.test"}}, nil, get(rawURL))
		if got := refusal(t, err, codeOf(err), ""); got.Code != code {
			t.Errorf("%q: %s: %s; want %s", rawURL, got.Code, got.Text, code)
		}
		if len(n.queries())+len(d.addresses()) > 0 {
			t.Errorf("%q: asked for %v, dialled %v", rawURL, n.queries(), d.addresses())
		}
	}
}

func TestS11_SchemesAndPorts(t *testing.T) {
	open := capability.HTTPRule{Host: "allowed.test", Ports: []int{443}}
	for rawURL, want := range map[string]string{
		"gopher://allowed.test/":       `scheme "gopher"`,
		"file:///etc/passwd":           `scheme "file"`,
		"file://allowed.test/x":        `scheme "file"`,
		"dict://allowed.test:11211/":   `scheme "dict"`,
		"ftp://allowed.test/":          `scheme "ftp"`,
		"data:text/plain,hi":           `scheme "data"`,
		"ws://allowed.test/":           `scheme "ws"`,
		"wss://allowed.test/":          `scheme "wss"`,
		"javascript:alert(1)":          `scheme "javascript"`,
		"unix:///run/x.sock":           `scheme "unix"`,
		"https+unix://allowed.test/":   `scheme "https+unix"`,
		"allowed.test/x":               `scheme ""`,
		"http://allowed.test/":         "not granted",
		"http://allowed.test:443/":     "not granted",
		"https://allowed.test:22/":     "not granted",
		"https://allowed.test:8443/":   "not granted",
		"https://allowed.test:0/":      "port",
		"https://allowed.test:65536/":  "port",
		"https://allowed.test:443443/": "port",
	} {
		n, d := resolves("93.184.215.14", "allowed.test"), &dials{}
		c := newClient(t, fetch.Options{Resolver: n, Dial: d.dial})
		_, err := c.Do(t.Context(), "m", granted{open}, nil, get(rawURL))
		refusal(t, err, codeOf(err), want)
		if len(n.queries())+len(d.addresses()) > 0 {
			t.Errorf("%s: asked for %v, dialled %v", rawURL, n.queries(), d.addresses())
		}
	}
}

// A name that is not granted is not even looked up: its labels could carry data out.
func TestS22_OnlyGrantedNamesAreLookedUp(t *testing.T) {
	ns := newNameserver(t, func(int, string) netip.Addr { return netip.MustParseAddr("93.184.215.14") })
	s := server(t, func(http.ResponseWriter, *http.Request) {})
	d := &dials{to: s.Listener.Addr().String()}
	c := newClient(t, fetch.Options{Resolver: ns.resolver(), Dial: d.dial})
	rules := granted{{Scheme: "http", Host: "*.x.test"}, {Scheme: "http", Host: "allowed.test"}}
	for _, host := range []string{"secret.evil.test", "a.b.x.test", "x.test", ".x.test", "secret.allowed.test", "ax.test", "a.x.test.evil.test"} {
		_, err := c.Do(t.Context(), "m", rules, nil, get("http://"+host+"/"))
		refusal(t, err, abi.Denied, "")
	}
	if len(ns.queries()) > 0 {
		t.Fatalf("asked for %v", ns.queries())
	}
	if _, err := c.Do(t.Context(), "m", rules, nil, get("http://a.x.test/")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ns.queries(), []string{"a.x.test."}) {
		t.Errorf("asked for %v", ns.queries())
	}
}

// Dot segments never reach a path that the rules did not decide about.
func TestS11_PathsAreWhatIsDecided(t *testing.T) {
	seen := make(chan string, 1)
	s := server(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.RequestURI })
	rule := loopback(t, s.URL)
	rule.Paths = []string{"/public/"}
	c := newClient(t, fetch.Options{})
	for path, want := range map[string]string{
		"/public/x":                 "/public/x",
		"/private/../public/x":      "/public/x",
		"/public/a%2Fb":             "/public/a%2Fb",
		"/public/%C3%A9/é":          "/public/%C3%A9/%C3%A9",
		"/public/a b?c d=\"e\"":     "/public/a%20b?c%20d=%22e%22",
		"/public/...;/..x/x..":      "/public/...;/..x/x..",
		"/public/a%25252541":        "/public/a%25252541",
		"/public/a%2525252541":      "",
		"/public/a%2541":            "/public/a%2541",
		"/public/100%25":            "/public/100%25",
		"/public/../private":        "",
		"/public/%2e%2e/private":    "",
		"/public/%2E./private":      "",
		"/public/..%2fprivate":      "",
		"/public/..%5cprivate":      "",
		"/public/..\\private":       "",
		"/public/%252e%252e/p":      "",
		"/public/%25252e%2e/p":      "",
		"/public/..;/private":       "",
		"/public/..;a=b/private":    "",
		"/public/%00":               "",
		"/public/%0d%0aX:%20y":      "",
		"/public/%2525252525252541": "",
		"/publicity":                "",
		"/":                         "",
		"":                          "",
	} {
		_, err := c.Do(t.Context(), "m", granted{rule}, nil, get(s.URL+path))
		if want == "" {
			refusal(t, err, abi.Denied, "")
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", path, err)
		} else if got := <-seen; got != want {
			t.Errorf("%q: sent as %q, want %q", path, got, want)
		}
	}
	if len(seen) > 0 {
		t.Errorf("%q was sent", <-seen)
	}
}

func TestURLsAndMethodsAreBounded(t *testing.T) {
	s := server(t, func(http.ResponseWriter, *http.Request) {})
	c := newClient(t, fetch.Options{})
	rule := loopback(t, s.URL)
	rule.Methods = append(rule.Methods, "ABCDEFGHIJKLMNOP", "CONNECT", "TRACE", "TRACK")
	do := func(method, rawURL string) error {
		_, err := c.Do(t.Context(), "m", granted{rule}, nil, fetch.Request{Method: method, URL: rawURL})
		return err
	}
	long := s.URL + "/" + strings.Repeat("a", 8<<10-len(s.URL)-1)
	if err := do("GET", long); err != nil {
		t.Error(err)
	}
	refusal(t, do("GET", long+"a"), abi.Invalid, "a URL of 8193 bytes: at most 8192")
	refusal(t, do("GET", s.URL+"/\xff"), abi.Invalid, "not UTF-8")
	refusal(t, do("GET", "http://"+strings.Repeat("a", 512)+"/"), abi.Denied, "a name has at most 253 characters")
	refusal(t, do("GET", "http://"+strings.Repeat("a", 513)+"/"), abi.Denied, "513 bytes: a name has at most 253 characters")
	for method, code := range map[string]abi.Code{"": 0, "get": 0, "ABCDEFGHIJKLMNOP": 0, "ABCDEFGHIJKLMNOPQ": abi.Invalid,
		"GET /x HTTP/1.1\r\n": abi.Invalid, "G T": abi.Invalid, "CONNECT": abi.Denied, "trace": abi.Denied, "TRACK": abi.Denied, "PROPFIND": abi.Denied} {
		if got := codeOf(do(method, s.URL+"/")); got != code {
			t.Errorf("method %q: %s, want %s", method, got, code)
		}
	}
}

// The blocks that the standard library's predicates miss, and those that they
// know: the first and the last address of each, and the public ones beside them.
func TestS04_OwnTableOfAddresses(t *testing.T) {
	for _, addr := range []string{
		"0.1.2.3", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.255.255",
		"168.63.129.16", "169.254.0.0", "169.254.255.255", "172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.255", "192.0.2.0",
		"192.0.2.255", "192.88.99.1", "192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.0",
		"198.51.100.255", "203.0.113.0", "203.0.113.255", "224.0.0.1", "239.255.255.255", "240.0.0.0", "255.255.255.254",
		"255.255.255.255", "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1",
		"100:0:0:1::1", "1fff:ffff::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:20::1",
		"2001:1ff:ffff::1", "2001:db8::1", "2001:db8:ffff::1", "2002::1", "2002:7f00:1::", "2002:808:808::1", "3ffe::1", "3fff::1",
		"3fff:fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1", "febf::1", "fec0::1", "feff::1", "ff02::1",
		"2600::5efe:a00:1", "2600::200:5efe:7f00:1", "2a00:1450:4001::100:5efe:a00:1", "fe80::1%eth0", "2600::1%eth0",
	} {
		if permitted(t, addr) {
			t.Errorf("%s was dialled", addr)
		}
	}
	for _, addr := range []string{
		"1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
		"168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0",
		"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "203.0.114.0", "223.255.255.255",
		"::ffff:8.8.8.8", "2000::1", "2001:200::1", "2001:db7::1", "2001:4860:4860::8888", "2003::1", "2606:4700:4700::1111",
		"2600::5eff:a00:1", "3ffd::1", "3ffe:ffff::1", "3fff:1000::1",
	} {
		if want := addr != "3ffe:ffff::1"; permitted(t, addr) != want {
			t.Errorf("%s: dialled %t, want %t", addr, !want, want)
		}
	}
}

// permitted reports whether an address is dialled under a rule that allows what
// is public, and the given prefixes.
func permitted(t *testing.T, addr string, allowed ...string) bool {
	t.Helper()
	d := &dials{}
	c := newClient(t, fetch.Options{Resolver: resolves(addr, "allowed.test"), Dial: d.dial})
	rule := capability.HTTPRule{Scheme: "http", Host: "allowed.test", AllowPrivate: prefixes(allowed...)}
	if _, err := c.Do(t.Context(), "m", granted{rule}, nil, get("http://allowed.test/")); err == nil {
		t.Fatalf("%s: answered", addr)
	}
	return len(d.addresses()) > 0
}

func TestS04_AllowPrivate(t *testing.T) {
	for _, tt := range []struct {
		addr    string
		allowed string
		want    bool
	}{
		{"192.168.1.7", "192.168.1.7/32", true},
		{"::ffff:192.168.1.7", "192.168.1.7/32", true},
		{"192.168.1.8", "192.168.1.7/32", false},
		{"127.0.0.1", "127.0.0.0/8", true},
		{"fd00::1", "fd00::/8", true},
		{"8.8.8.8", "10.0.0.0/8", true}, // public stays public
		// Where credentials are given out, a wide prefix is no permission.
		{"169.254.169.254", "169.254.0.0/16", false},
		{"169.254.169.254", "0.0.0.0/0", false},
		{"169.254.169.254", "169.254.169.254/32", true},
		{"fd00:ec2::254", "fd00::/8", false},
		{"fd00:ec2::254", "fd00:ec2::254/128", true},
		{"168.63.129.16", "0.0.0.0/0", false},
		// What leads nowhere or everywhere is never permitted.
		{"0.0.0.0", "0.0.0.0/0", false},
		{"0.0.0.0", "0.0.0.0/32", false},
		{"255.255.255.255", "0.0.0.0/0", false},
		{"224.0.0.1", "224.0.0.0/4", false},
		{"::", "::/0", false},
		{"ff02::1", "::/0", false},
		{"fe80::1%eth0", "fe80::/10", false},
		// What a network translates to IPv4 is looked at there too.
		{"64:ff9b::8.8.8.8", "64:ff9b::/96", true},
		{"64:ff9b::10.0.0.1", "64:ff9b::/96", false},
		{"64:ff9b::127.0.0.1", "::/0", false},
		{"64:ff9b::169.254.169.254", "::/0", false},
	} {
		if got := permitted(t, tt.addr, tt.allowed); got != tt.want {
			t.Errorf("%s with allow_private [%s]: dialled %t, want %t", tt.addr, tt.allowed, got, tt.want)
		}
	}
}
