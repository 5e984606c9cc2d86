package gate_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
)

// E12: the bytes of a request are read once. Whoever changes them afterwards, here
// between two hops, changes neither where it goes nor what it says.
func TestE12_ARequestIsReadOnce(t *testing.T) {
	var request []byte
	var rewrite func()
	bodies := make(chan string, 10)
	base, entry := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- r.RequestURI + " " + r.Header.Get("Accept") + " " + string(body)
		if r.URL.Path == "/first" {
			rewrite()
			http.Redirect(w, r, "/second", http.StatusTemporaryRedirect)
		}
	})
	host := newWorld(t, entry).begin()
	request = []byte(`{"method":"POST","url":"` + base + `/first","headers":{"Accept":"original"},"body":"original"}`)
	rewrite = func() {
		copy(request, bytes.ReplaceAll(bytes.ReplaceAll(request, []byte("original"), []byte("otherway")), []byte("/first"), []byte("/other")))
	}
	wants(t, host(t.Context(), abi.Request{Op: abi.OpHTTP, Body: request}), abi.OK, `"url":"`+base+`/second"`)
	if !strings.Contains(string(request), "otherway") {
		t.Error("nothing was rewritten")
	}
	for _, want := range []string{"/first original original", "/second original original"} {
		if got := <-bodies; got != want {
			t.Errorf("the server got %s, want %s", got, want)
		}
	}
}

// Each bound of a rule, met and missed by one, at the door.
func TestBoundsOfARule(t *testing.T) {
	base, entry := server(t, ", paths: [/in/], max_request: 8B, max_response: 16B, rate: 5/h", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", len(r.URL.Query().Get("n"))))
	})
	w := newWorld(t, entry)
	host := w.begin()
	post := func(body string) string { return fmt.Sprintf(`{"method":"POST","url":"%s/in/","body":%q}`, base, body) }
	wants(t, ask(host, abi.OpHTTP, post("12345678")), abi.OK, `"status":200`)
	wants(t, ask(host, abi.OpHTTP, post("123456789")), abi.Limit, "a body of 9 bytes: at most 8 are allowed (max_request)")
	wants(t, ask(host, abi.OpHTTP, get(base+"/in/?n=1234567890123456")), abi.OK, `"body":"xxxxxxxxxxxxxxxx"`)
	wants(t, ask(host, abi.OpHTTP, get(base+"/in/?n=12345678901234567")), abi.Limit, "more than 16 bytes, which is all that is allowed (max_response)")
	wants(t, ask(host, abi.OpHTTP, get(base+"/out")), abi.Denied, "not granted")
	wants(t, ask(host, abi.OpHTTP, get(base+"/in/..%2fout")), abi.Denied, "dot segments")
	wants(t, ask(host, abi.OpHTTP, `{"method":"DELETE","url":"`+base+`/in/"}`), abi.Denied, "not granted")
	wants(t, ask(host, abi.OpHTTP, get(base+"/in/")), abi.OK, "")
	wants(t, ask(host, abi.OpHTTP, get(base+"/in/")), abi.Limit, "more than the 5/h that are allowed: try again in 12m")
	w.now = w.now.Add(12 * time.Minute)
	wants(t, ask(host, abi.OpHTTP, get(base+"/in/")), abi.OK, "")
	wants(t, ask(host, abi.OpHTTP, get(base+"/in/")), abi.Limit, "more than the 5/h")
}

// S21: two modules that may reach the same public server do so over connections of
// their own, though each keeps its own for its next request.
func TestS21_ModulesDoNotShareConnections(t *testing.T) {
	var connections atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	grant := "    grant: {http: [{scheme: http, host: api.test}]}\n"
	w := newWorld(t, grant+"  y.wasm:\n    digest: sha256:"+digest+"\n"+grant)
	client := fetch.New(fetch.Options{Resolver: resolver{}, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}})
	t.Cleanup(client.Close)
	vault, err := secrets.Open(secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := gate.New(gate.Options{Fetch: client, Secrets: vault})
	for i, step := range []struct {
		module string
		want   int32 // connections so far
	}{{"x.wasm", 1}, {"y.wasm", 2}, {"x.wasm", 2}, {"y.wasm", 2}} {
		m := w.module
		m.Name = step.module
		host, _, end := g.Call(caller(), m, "take", w.book.Effective(caller(), m, "take"))
		wants(t, ask(host, abi.OpHTTP, get("http://api.test/")), abi.OK, `"status":200`)
		end()
		if got := connections.Load(); got != step.want {
			t.Errorf("step %d, module %s: %d connections, want %d", i, step.module, got, step.want)
		}
	}
}

// An address that is not public is reached by no rule but one that names it.
func TestAllowPrivateAtTheDoor(t *testing.T) {
	base, entry := server(t, "", func(http.ResponseWriter, *http.Request) {})
	wants(t, ask(newWorld(t, entry).begin(), abi.OpHTTP, get(base)), abi.OK, "")
	named := strings.Replace(strings.Replace(entry, "host: 127.0.0.1, methods", "host: localhost, methods", 1), "host: 127.0.0.1}]", "host: localhost}]", 1)
	local := strings.Replace(base, "127.0.0.1", "localhost", 1)
	wants(t, ask(newWorld(t, named).begin(), abi.OpHTTP, get(local)), abi.OK, "")
	other := strings.Replace(named, "allow_private: [127.0.0.1/32]", "allow_private: [127.0.0.2/32]", 1)
	wants(t, ask(newWorld(t, other).begin(), abi.OpHTTP, get(local)), abi.Denied, "blocked_ip")
	wants(t, ask(newWorld(t, other).begin(), abi.OpHTTP, get(base)), abi.Denied, "not granted")
	star := "    grant: {http: [{scheme: http, host: \"*\", ports: [1, 80]}]}\n"
	for _, target := range []string{base, local, "http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/latest/meta-data/", "http://localhost/"} {
		wants(t, ask(newWorld(t, star).begin(), abi.OpHTTP, get(target)), abi.Denied, "not granted")
	}
}

// Of each kind of grant: what is asked for and not granted is refused, and what is
// granted and not asked for is too.
func TestEveryKindNeedsItsGrant(t *testing.T) {
	for _, tt := range []struct {
		op          abi.Op
		kind, grant string
	}{
		{abi.OpHTTP, "http", `http: [{host: a.test}]`},
		{abi.OpKVGet, "kv", `kv: {max: 1KiB}`}, {abi.OpKVSet, "kv", `kv: {max: 1KiB}`}, {abi.OpKVDelete, "kv", `kv: {max: 1KiB}`},
		{abi.OpTracker, "tracker", `tracker: ["tasks:read"]`}, {abi.OpConversation, "conversation", `conversation: [send]`},
		{abi.OpMCP, "bridge", `bridge: ["mcp:files/read_file"]`}, {abi.OpA2A, "bridge", `bridge: ["a2a:reviewer"]`}, {abi.OpTool, "tool", `tool: [word_count]`},
	} {
		other := "kv: {max: 1KiB}"
		if tt.kind == "kv" {
			other = "conversation: [send]"
		}
		body, allow, never, taken := "{}", tt.kind+" is not granted; only a person can allow it", tt.kind+" is not granted", tt.kind+" is not granted"
		if tt.kind == "http" {
			body, allow, never, taken = get("https://a.test/"), "run this in a terminal: hutch tools grant x.wasm --http a.test", "never requested", "not granted to this tool"
		}
		without := newWorld(t, "    grant: {"+other+"}\n")
		wants(t, ask(without.begin(), tt.op, body), abi.Denied, allow)
		unasked := newWorld(t, "    grant: {"+tt.grant+"}\n")
		delete(unasked.module.Requests, tt.kind)
		wants(t, ask(unasked.begin(), tt.op, body), abi.Denied, never)
		if tt.kind == "http" || tt.kind == "kv" {
			narrowed := newWorld(t, "    grant: {"+tt.grant+"}\n    tools: {take: {grant: {"+map[string]string{"http": "http: []", "kv": "kv: {max: 0B}"}[tt.kind]+"}}}\n")
			wants(t, ask(narrowed.begin(), tt.op, body), abi.Denied, taken)
		}
		if r := ask(newWorld(t, "    grant: {"+tt.grant+"}\n").begin(), tt.op, `{}`); r.Code == abi.Denied {
			t.Errorf("%s is granted, and refused: %s", tt.op, r.Body)
		}
	}
}

// What asks a person, or is denied, reaches nobody, whichever rule stands beside it.
func TestAskAndDenyReachNobody(t *testing.T) {
	base, entry := server(t, ", approval: ask", func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	wants(t, ask(newWorld(t, entry).begin(), abi.OpHTTP, get(base)), abi.Denied, "not allowed yet")
	wants(t, ask(newWorld(t, entry+"    tools: {take: {approval: ask}}\n").begin(), abi.OpHTTP, get(base)), abi.Denied, "waits for a person before each call, as the policy says")
	wants(t, ask(newWorld(t, entry+"    tools: {take: {approval: deny}}\n").begin(), abi.OpHTTP, get(base)), abi.Denied, "denied by the policy")
	base, entry = server(t, "", func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	narrow := entry + "    tools: {take: {grant: {http: [{scheme: http, host: 127.0.0.1, ports: [" + base[strings.LastIndex(base, ":")+1:] + "], approval: ask, allow_private: [127.0.0.1/32]}]}}}\n"
	wants(t, ask(newWorld(t, narrow).begin(), abi.OpHTTP, get(base)), abi.Denied, "not granted to this tool")
}

// Without counters nothing that is counted is given.
func TestQuotasNeedCounters(t *testing.T) {
	base, entry := server(t, "", func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	w := newWorld(t, entry+"    limits: {egress_per_day: 1MiB, calls_per_day: 5}\n")
	w.shelf.fail = context.DeadlineExceeded
	wants(t, ask(w.begin(), abi.OpHTTP, get(base)), abi.Unavailable, "what it used today cannot be counted now")
	if refusal := w.Admit(t.Context(), w.module, w.effective()); refusal == nil || refusal.Code != abi.Unavailable {
		t.Errorf("admitted: %v", refusal)
	}
}

// An observed policy allows an address that is not public, by the one table of them.
func TestObservedAddressesAreAllowed(t *testing.T) {
	for host, private := range map[string]bool{"100.64.0.1": true, "192.0.2.1": true, "198.18.0.1": true, "[64:ff9b::808:808]": true, "[2001:db8::1]": true,
		"10.0.0.1": true, "169.254.169.254": true, "8.8.8.8": false, "[2606:4700::1]": false} {
		o := gate.NewObserver(gate.Observation{})
		ask(o.Host, abi.OpHTTP, get("https://"+host+"/"))
		text := o.Policy("x.wasm", capability.Binding{Digest: digest})
		if _, err := capability.Parse("policy.yaml", []byte(text)); err != nil || strings.Contains(text, "allow_private") != private {
			t.Errorf("%s: %v\n%s", host, err, text)
		}
	}
}

// S18: a server that sends a secret back as the place it redirects to tells the
// guest no more than one that writes it into its answer.
func TestS18_RedirectsThatHoldASecret(t *testing.T) {
	base, entry := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/next?t="+r.Header.Get("Authorization"), http.StatusFound)
		}
	})
	wants(t, ask(newWorld(t, entry).begin(), abi.OpHTTP, get(base+"/")), abi.OK, `"url":"`+base+`/next?t=[redacted:token]"`)
}

// S18: what is said of a redirect that is not followed has lost the value before it is
// cut, and so has the name of a host, in which letters change their case.
func TestS18_RedirectsThatAreNotFollowed(t *testing.T) {
	var to string
	base, entry := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Location"] = []string{strings.ReplaceAll(to, "VALUE", r.Header.Get("Authorization"))}
		w.WriteHeader(http.StatusFound)
	})
	w := newWorld(t, entry)
	host := w.begin()
	for padding := range 100 { // wherever it is cut
		to = "https://h%zz/" + strings.Repeat("x", padding) + "VALUE"
		wants(t, ask(host, abi.OpHTTP, get(base)), abi.Invalid, "cannot be read")
		host = w.begin()
	}
	for _, to = range []string{"VALUE://x/", "https://VALUE.test/", "https://VALUE:99999/", "https://x/%zzVALUE", strings.Repeat("x", 90) + "://VALUE"} {
		r := ask(host, abi.OpHTTP, get(base))
		if r.Code == abi.OK {
			t.Errorf("%s: %s", to, r.Body)
		}
		wants(t, r, r.Code, "redirect by host")
	}
	if strings.Contains(w.log.String(), "hunter2") || strings.Contains(fmt.Sprint(w.audit.all), "hunter2") {
		t.Errorf("the secret is written down: %s\n%v", w.log, w.audit.all)
	}
}

// S18: what tells of an answer how long it is or what it hashes to goes with what is
// taken out of it, and so does a field that is named like a value.
func TestS18_MeasuresGoWithTheValue(t *testing.T) {
	base, entry := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		w.Header().Set("Etag", `"hash"`)
		w.Header().Set("Digest", "sha-256=hash")
		w.Header().Set("Content-Range", "bytes 0-9/10")
		switch r.URL.Path {
		case "/body":
			_, _ = io.WriteString(w, got)
		case "/name":
			w.Header().Set("X-Github-"+strings.ToUpper(strings.TrimPrefix(got, "Bearer ")), "1")
		case "/part":
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, got[:10])
		}
	})
	w := newWorld(t, entry)
	for path, kept := range map[string]bool{"/none": true, "/body": false, "/name": false} {
		r := ask(w.begin(), abi.OpHTTP, get(base+path))
		wants(t, r, abi.OK, `"status":200`)
		for _, field := range []string{"Etag", "Digest", "Content-Length", "Content-Range"} {
			if strings.Contains(string(r.Body), `"`+field+`"`) != kept {
				t.Errorf("%s: %s is there or not: %s", path, field, r.Body)
			}
		}
		if strings.Contains(strings.ToLower(string(r.Body)), "hunter2") {
			t.Errorf("%s: %s", path, r.Body)
		}
	}
	wants(t, ask(w.begin(), abi.OpHTTP, get(base+"/part")), abi.Unavailable, "answers with a part")
	ranged := `{"url":"` + base + `/part","headers":{"Range":"bytes=0-9"}}`
	wants(t, ask(w.begin(), abi.OpHTTP, ranged), abi.Denied, "leave the header Range out")
	plain, _, _ := strings.Cut(entry, "      secrets:")
	wants(t, ask(newWorld(t, plain).begin(), abi.OpHTTP, strings.Replace(ranged, "/part", "/body", 1)), abi.OK, `"status":200`)
}

// S18: an answer in UTF-16 is brought into UTF-8, with whatever escapes it has.
func TestS18_UTF16IsRedacted(t *testing.T) {
	base, entry := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		text := "é 🔑 " + strings.ReplaceAll(r.Header.Get("Authorization"), "hunter", `\u0068unt%65r`)
		if r.URL.Query().Has("mark") {
			text = "\ufeff" + text
		}
		var body []byte
		for _, unit := range utf16.Encode([]rune(text)) {
			if r.URL.Path == "/le" {
				body = binary.LittleEndian.AppendUint16(body, unit)
			} else {
				body = binary.BigEndian.AppendUint16(body, unit)
			}
		}
		_, _ = w.Write(body)
	})
	w := newWorld(t, entry)
	for _, path := range []string{"/be?type=text/plain&mark", "/le?type=application/json&mark", "/le?type=text/plain%3Bcharset%3DUTF-16LE", "/be?type=text/plain%3Bcharset%3Dutf-16", "/le?type=&mark"} {
		r := ask(w.begin(), abi.OpHTTP, get(base+path))
		wants(t, r, abi.OK, `"body":"é 🔑 [redacted:token]"`)
		if strings.Contains(strings.ToLower(string(r.Body)), "charset=utf-16") {
			t.Errorf("%s: %s", path, r.Body)
		}
	}
	r := ask(w.begin(), abi.OpHTTP, get(base+"/le?type=image/png&mark"))
	wants(t, r, abi.OK, `"bodyBase64"`) // which is no text
}
