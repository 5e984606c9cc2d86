package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/host/kv"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// liveness bounds what must happen in a moment.
const liveness = 10 * time.Second

const (
	theSecret = "hunter2-hunter2-hunter2"
	digest    = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// shelf is a store in memory, and counters.
type shelf struct {
	mu      sync.Mutex
	values  map[string][]byte
	counts  map[string][2]int64
	counted int // times
	fail    error
	block   chan struct{}
}

func (s *shelf) KVGet(ctx context.Context, space, key string) ([]byte, int64, time.Time, error) {
	if s.block != nil {
		select {
		case <-s.block:
		case <-ctx.Done():
			return nil, 0, time.Time{}, ctx.Err()
		}
	}
	if key == "panic" {
		panic("broken by " + theSecret)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, ok := s.values[space+" "+key]; ok {
		return value, 1, time.Time{}, nil
	}
	return nil, 0, time.Time{}, nil
}

func (s *shelf) KVPut(_ context.Context, space, key, _ string, value []byte, _ time.Duration, _, _ int64) (int64, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[space+" "+key] = bytes.Clone(value)
	return 1, time.Time{}, nil
}

func (s *shelf) KVDelete(context.Context, string, string, int64) (bool, error) { return false, nil }

func (s *shelf) KVKeys(context.Context, string, string, string, int) ([]string, error) {
	return nil, nil
}

func (s *shelf) Count(_ context.Context, subject string, addCalls, addBytes, maxCalls, maxBytes int64) (int64, int64, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted++
	if s.fail != nil {
		return 0, 0, false, s.fail
	}
	used := s.counts[subject]
	next := [2]int64{used[0] + addCalls, used[1] + addBytes}
	if maxCalls > 0 && next[0] > maxCalls || maxBytes > 0 && next[1] > maxBytes {
		return used[0], used[1], false, nil
	}
	s.counts[subject] = next
	return next[0], next[1], true, nil
}

// records is an audit that keeps what it is told.
type records struct {
	mu  sync.Mutex
	all []gate.Record
}

func (r *records) Gated(_ context.Context, rec gate.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, rec)
}

func (r *records) last() gate.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return gate.Record{}
	}
	return r.all[len(r.all)-1]
}

// world is a gate with all that is behind it.
type world struct {
	testing.TB
	*gate.Gate
	shelf  *shelf
	audit  *records
	log    *bytes.Buffer
	now    time.Time
	module tool.Module
	book   *capability.Book
	client *fetch.Client
}

// requests ask for everything.
func requests() tool.Requests {
	all := tool.Requests{}
	for _, kind := range []string{"http", "secrets", "kv", "tracker", "conversation", "bridge", "tool"} {
		all[kind] = json.RawMessage(`[{"reason":"a test"}]`)
	}
	return all
}

// newWorld grants to x.wasm what entry says, in YAML below the module.
func newWorld(t testing.TB, entry string) *world {
	t.Helper()
	text := "version: 1\nmodules:\n  x.wasm:\n    digest: sha256:" + digest + "\n" + entry
	policy, err := capability.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	file := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte("token="+theSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	vault, err := secrets.Open(secrets.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, shelf: &shelf{values: map[string][]byte{}, counts: map[string][2]int64{}}, audit: &records{}, log: &bytes.Buffer{},
		now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), book: capability.NewBook(capability.Options{Policy: policy}),
		module: tool.Module{Name: "x.wasm", Digest: digest, Requests: requests()}, client: fetch.New(fetch.Options{})}
	t.Cleanup(w.client.Close)
	w.Gate = gate.New(gate.Options{
		Fetch: w.client, Secrets: vault, KV: kv.New(w.shelf, nil), Counters: w.shelf, Audit: w.audit,
		Now: func() time.Time { return w.now }, Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	return w
}

func caller() tool.Caller { return tool.Caller{Principal: "local", CallID: "7"} }

func (w *world) effective() capability.Effective { return w.book.Effective(caller(), w.module, "take") }

// begin begins a call that ends with the test.
func (w *world) begin() abi.Host {
	w.Helper()
	host, _, end := w.Call(caller(), w.module, "take", w.effective())
	w.Cleanup(end)
	return host
}

// wants fails unless the operation comes to that code, with words in its body.
func wants(t testing.TB, r abi.Response, code abi.Code, words string) {
	t.Helper()
	if r.Code != code || !strings.Contains(string(r.Body), words) || !json.Valid(r.Body) {
		t.Errorf("got %v %.400s, want %v with %q", r.Code, r.Body, code, words)
	}
	if strings.Contains(string(r.Body), "hunter2") {
		t.Errorf("the secret is told: %.400s", r.Body)
	}
}

func ask(host abi.Host, op abi.Op, body string) abi.Response {
	return host(context.Background(), abi.Request{Op: op, Body: []byte(body)})
}

// server is an upstream, and the entry that lets x.wasm reach it.
func server(t testing.TB, more string, h http.HandlerFunc) (base, entry string) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s.URL, fmt.Sprintf(`    grant:
      http: [{scheme: http, host: 127.0.0.1, methods: [GET, POST], ports: [%s], allow_private: [127.0.0.1/32]%s}]
      secrets: [{name: token, header: Authorization, host: 127.0.0.1}]
`, u.Port(), more)
}

func get(target string) string { return `{"url":"` + target + `"}` }

func TestOperationsAreServedByTheirGrant(t *testing.T) {
	base, entry := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Etag", r.Header.Get("Authorization"))
		fmt.Fprintf(w, "%s %s %s %s <&>", r.Method, r.Header.Get("X-Api-Key"), body, r.Header.Get("Authorization"))
	})
	w := newWorld(t, entry+"      kv: {max: 1KiB}\n      tracker: [\"tasks:read\"]\n    config: {k: v, t: \"secret://token\"}\n")
	host, config, end := w.Call(caller(), w.module, "take", w.effective())
	defer end()
	if config["k"] != "v" || config["t"] != "secret://token" {
		t.Errorf("config %v", config)
	}
	wants(t, ask(host, abi.OpKVSet, `{"key":"a","value":"b"}`), abi.OK, `"stored":true`)
	wants(t, ask(host, abi.OpKVGet, `{"key":"a"}`), abi.OK, `"value":"b"`)
	if _, ok := w.shelf.values["x.wasm/local a"]; !ok {
		t.Errorf("kept: %v", w.shelf.values)
	}
	wants(t, ask(host, abi.OpHTTP, `{"method":"POST","url":"`+base+`/a?b=c","headers":{"x-api-key":"k","Accept":"a"},"bodyBase64":"aGk="}`),
		abi.OK, `"body":"POST k hi [redacted:token] <&>"`)
	want := gate.Record{Caller: caller(), Module: "x.wasm", Digest: digest, Tool: "take", Op: abi.OpHTTP}
	got := w.audit.last()
	if got.Caller != want.Caller || got.Module != want.Module || got.Digest != want.Digest || got.Tool != want.Tool || got.Op != want.Op ||
		!strings.HasPrefix(base, "http://"+got.Host) || got.Addr.String() != "127.0.0.1" || got.Sent < 100 || got.Received < 50 ||
		strings.Join(got.Secrets, " ") != "token" || got.Redactions != 2 || got.Code != abi.OK {
		t.Errorf("record %+v", got)
	}
	wants(t, ask(host, abi.OpTracker, `{}`), abi.Unavailable, "no tracker is set up here")
	wants(t, ask(host, abi.OpConversation, `{}`), abi.Denied, "conversation is not granted")
	wants(t, ask(host, "launch", `{}`), abi.Invalid, `unknown operation`)
	if op := w.audit.last().Op; op != "unknown" {
		t.Errorf("recorded as %q", op)
	}
	if len(w.audit.all) != 6 {
		t.Errorf("%d records of 6 operations", len(w.audit.all))
	}
}

// S17: nothing is served that is not granted, and nothing of what is refused is sent.
func TestS17_RefusalsAreRecordedAndNotSent(t *testing.T) {
	base, entry := server(t, ", paths: [/open]", func(http.ResponseWriter, *http.Request) { t.Error("sent") })
	w := newWorld(t, entry)
	host := w.begin()
	for _, tt := range []struct {
		body string
		code abi.Code
		want string
	}{
		{get(base + "/closed"), abi.Denied, "not granted"},
		{get("http://other.example/open"), abi.Denied, "not granted"},
		{`{"url":"` + base + `/open","headers":{"Authorization":"` + theSecret + `"}}`, abi.Denied, "put secret://token in its place"},
		{`{"url":"` + base + `/open","headers":{"X-Api-Key":"secret://token"}}`, abi.Denied, "is not granted in the header"},
		{`{"method":"POST","url":"` + base + `/open","body":"secret://token"}`, abi.Denied, "is in the body"},
		{`{"url":"` + base + `/open","headers":{"Host":"x"}}`, abi.Denied, "header Host"},
		{`{"url":7}`, abi.Invalid, "url is of type number, allowed is a string"},
		{`{"url":"x","more":1}`, abi.Invalid, `allowed are method, url, headers, body, bodyBase64`},
		{`{"url":"x","url":"y"}`, abi.Invalid, "url"},
		{`{"url":"x","body":"","bodyBase64":""}`, abi.Invalid, "leave one out"},
		{`{"url":"x","bodyBase64":"!"}`, abi.Invalid, "not standard base64"},
		{`{"url":"x","headers":["a"]}`, abi.Invalid, "headers is of type array"},
		{`{"url":"x","headers":{"A":7}}`, abi.Invalid, "is of type number"},
		{`{"method":"GET"}`, abi.Invalid, "url must be there"},
		{`[]`, abi.Invalid, "allowed is an object"},
		{``, abi.Invalid, ""},
	} {
		wants(t, ask(host, abi.OpHTTP, tt.body), tt.code, tt.want)
		if got := w.audit.last(); got.Code != tt.code || got.Sent != 0 || got.Secrets != nil {
			t.Errorf("%s: recorded as %+v", tt.body, got)
		}
	}
	if all := fmt.Sprintf("%+v %s", w.audit.all, w.log); strings.Contains(all, "hunter2") {
		t.Errorf("a record or the log has the secret: %s", all)
	}
}

// S18: a server that sends a value where no tool may go does not get it into the
// refusal.
func TestS18_RefusalsAreRedacted(t *testing.T) {
	base, entry := server(t, ", paths: [/open]", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+".example/", http.StatusFound)
	})
	w := newWorld(t, entry)
	wants(t, ask(w.begin(), abi.OpHTTP, get(base+"/open")), abi.Denied, "the host of the URL holds the value of a secret")
	if strings.Contains(w.log.String(), "hunter2") {
		t.Errorf("log: %s", w.log)
	}
}

func TestNothingIsServedWithoutItsService(t *testing.T) {
	w := newWorld(t, "    grant: {http: [{host: example.org}], kv: {}}\n    limits: {calls_per_day: 5}\n")
	bare := gate.New(gate.Options{})
	host, _, end := bare.Call(caller(), w.module, "take", w.effective())
	defer end()
	wants(t, ask(host, abi.OpHTTP, get("https://example.org")), abi.Unavailable, "cannot be made here")
	wants(t, ask(host, abi.OpKVGet, `{"key":"a"}`), abi.Unavailable, "hutch serve")
	if r := bare.Admit(t.Context(), w.module, w.effective()); r == nil || r.Code != abi.Unavailable {
		t.Errorf("a quota that nobody counts: %v", r)
	}
	nothing, config, end := w.Call(caller(), w.module, "take", capability.Effective{})
	defer end()
	wants(t, ask(nothing, abi.OpKVGet, `{"key":"a"}`), abi.Denied, "nothing is granted")
	wants(t, ask(nothing, abi.OpHTTP, get("https://example.org")), abi.Denied, "nothing is granted")
	if config != nil {
		t.Errorf("config %v", config)
	}
}

// E07: the operation that is one too many is not done.
func TestE07_BudgetsOfACall(t *testing.T) {
	served := 0
	base, entry := server(t, "", func(http.ResponseWriter, *http.Request) { served++ })
	w := newWorld(t, entry+"      kv: {}\n    limits: {host_calls: 25}\n")
	host := w.begin()
	for range 20 {
		wants(t, ask(host, abi.OpHTTP, get(base)), abi.OK, `"status":200`)
	}
	wants(t, ask(host, abi.OpHTTP, get(base)), abi.Limit, "has made 20 requests")
	if served != 20 {
		t.Errorf("%d requests", served)
	}
	for range 4 {
		wants(t, ask(host, abi.OpKVGet, `{"key":"a"}`), abi.OK, "false")
	}
	wants(t, ask(host, abi.OpKVGet, `{"key":"a"}`), abi.Limit, "limits.host_calls")
	wants(t, ask(w.begin(), abi.OpKVGet, `{"key":"a"}`), abi.OK, "false")
}

// A rule's rate holds for all calls of the module together, and not for others.
func TestRates(t *testing.T) {
	base, entry := server(t, ", rate: 3/min", func(http.ResponseWriter, *http.Request) {})
	w := newWorld(t, entry)
	for range 3 {
		wants(t, ask(w.begin(), abi.OpHTTP, get(base)), abi.OK, "200")
	}
	wants(t, ask(w.begin(), abi.OpHTTP, get(base)), abi.Limit, "more than the 3/min that are allowed: try again in 20s")
	w.now = w.now.Add(20 * time.Second)
	wants(t, ask(w.begin(), abi.OpHTTP, get(base)), abi.OK, "200")
	wants(t, ask(w.begin(), abi.OpHTTP, get(base)), abi.Limit, "try again")
}

func TestCallsPerDay(t *testing.T) {
	w := newWorld(t, "    grant: {}\n    limits: {calls_per_day: 200}\n")
	admit := func() *capability.Refusal { return w.Admit(t.Context(), w.module, w.effective()) }
	for i := range 200 {
		if r := admit(); r != nil {
			t.Fatalf("call %d: %v", i, r)
		}
	}
	if w.shelf.counted > 70 {
		t.Errorf("counted %d times: each is a write to the disk", w.shelf.counted)
	}
	if r := admit(); r == nil || r.Code != abi.Limit || !strings.Contains(r.Text, "used up its 200 calls for today (limits.calls_per_day)") {
		t.Errorf("call 201: %v", r)
	}
	w.now, w.shelf.counts = w.now.Add(12*time.Hour), map[string][2]int64{}
	if r := admit(); r != nil {
		t.Errorf("tomorrow: %v", r)
	}
	w.now, w.shelf.fail = w.now.Add(24*time.Hour), errors.New("disk /dev/x is gone")
	if r := admit(); r == nil || r.Code != abi.Unavailable || strings.Contains(r.Text, "/dev/x") {
		t.Errorf("without a disk: %v", r)
	}
}

// What is sent and received counts, and no answer is larger than what is left.
func TestEgressPerDay(t *testing.T) {
	base, entry := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
		_, _ = w.Write(bytes.Repeat([]byte("x"), n))
	})
	w := newWorld(t, entry+"    limits: {egress_per_day: 64KiB}\n")
	host := w.begin()
	for range 5 {
		wants(t, ask(host, abi.OpHTTP, get(base+"/10000")), abi.OK, "200")
	}
	wants(t, ask(host, abi.OpHTTP, get(base+"/60000")), abi.Limit, "max_response")
	used := int64(0)
	for _, r := range w.audit.all {
		used += r.Sent + r.Received
	}
	if used > 64<<10 {
		t.Errorf("%d bytes went, of 65536", used)
	}
	for range 5 {
		ask(host, abi.OpHTTP, get(base+"/4000"))
	}
	wants(t, ask(host, abi.OpHTTP, get(base+"/1")), abi.Limit, "used up its 65536 bytes of requests and answers for today (limits.egress_per_day)")
}

// E26: what is under way when a call ends is cut off at once, at the server too,
// and later operations are refused.
func TestE26_OperationsEndWithTheirCall(t *testing.T) {
	came, gone := make(chan struct{}), make(chan struct{})
	base, entry := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		close(came)
		<-r.Context().Done()
		close(gone)
	})
	w := newWorld(t, entry+"      kv: {}\n")
	w.shelf.block = make(chan struct{})
	for _, tt := range []struct {
		op   abi.Op
		body string
	}{{abi.OpHTTP, get(base)}, {abi.OpKVGet, `{"key":"a"}`}} {
		host, _, end := w.Call(caller(), w.module, "take", w.effective())
		answers := make(chan abi.Response, 1)
		go func() { answers <- ask(host, tt.op, tt.body) }()
		if tt.op == abi.OpHTTP {
			<-came
		}
		end()
		select {
		case r := <-answers:
			wants(t, r, abi.Cancelled, "the call")
		case <-time.After(liveness):
			t.Fatalf("%s goes on", tt.op)
		}
		wants(t, ask(host, tt.op, tt.body), abi.Cancelled, "the call has ended")
	}
	select {
	case <-gone:
	case <-time.After(liveness):
		t.Error("the server's connection stays")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wants(t, w.begin()(ended, abi.Request{Op: abi.OpKVGet}), abi.Cancelled, "ended")
}

// E15: what breaks is a refusal, and its text goes to the log alone, redacted.
func TestE15_PanicsAreRefusals(t *testing.T) {
	w := newWorld(t, "    grant: {kv: {}}\n")
	wants(t, ask(w.begin(), abi.OpKVGet, `{"key":"panic"}`), abi.Unavailable, "kv_get: the operation failed")
	if log := w.log.String(); strings.Contains(log, "hunter2") || !strings.Contains(log, "broken by [redacted:token]") {
		t.Errorf("log: %.300s", log)
	}
	if got := w.audit.last(); got.Code != abi.Unavailable || got.Op != abi.OpKVGet {
		t.Errorf("record %+v", got)
	}
}

func TestAnswersThatAreNoText(t *testing.T) {
	base, entry := server(t, "", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("\xff" + theSecret)) })
	w := newWorld(t, entry)
	r := ask(w.begin(), abi.OpHTTP, get(base))
	var got abi.HTTPResponse
	if err := json.Unmarshal(r.Body, &got); err != nil || string(got.BodyBase64) != "\xff[redacted:token]" || got.Body != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Many calls of many modules at once.
func TestManyCallsAtOnce(t *testing.T) {
	base, entry := server(t, ", rate: 1000/s", func(http.ResponseWriter, *http.Request) {})
	w := newWorld(t, entry+"      kv: {}\n    limits: {egress_per_day: 1GiB, calls_per_day: 1000}\n")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 5 {
				if r := w.Admit(t.Context(), w.module, w.effective()); r != nil {
					t.Error(r)
				}
				host, _, end := w.Call(caller(), w.module, "take", w.effective())
				wants(t, ask(host, abi.OpKVSet, `{"key":"a","value":"b"}`), abi.OK, "")
				wants(t, ask(host, abi.OpHTTP, get(base)), abi.OK, "")
				end()
			}
		})
	}
	group.Wait()
	if len(w.audit.all) != 80 {
		t.Errorf("%d records", len(w.audit.all))
	}
}
