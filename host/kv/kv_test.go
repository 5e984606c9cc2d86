package kv_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/host/kv"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is when everything here happens.
func now() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func openStore(t testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "hutch.db"), store.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// notes is an access that a test may narrow.
func notes() kv.Access {
	return kv.Access{Module: "notes.wasm", Tenant: "local", Writer: "call 7"}
}

// does serves an operation and fails unless the answer is want, after its code's
// name.
func does(t *testing.T, s *kv.Service, a kv.Access, op abi.Op, body, want string) {
	t.Helper()
	r := s.Serve(t.Context(), a, abi.Request{Op: op, Body: []byte(body)})
	if got := r.Code.String() + " " + string(r.Body); got != want {
		t.Errorf("%s %.200s\ngot  %.200s\nwant %s", op, body, got, want)
	}
}

// refuses fails unless the operation is refused with that code and a text that
// says so.
func refuses(t *testing.T, s *kv.Service, a kv.Access, op abi.Op, body string, code abi.Code, says string) {
	t.Helper()
	r := s.Serve(t.Context(), a, abi.Request{Op: op, Body: []byte(body)})
	var answer struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(r.Body, &answer); err != nil {
		t.Fatal(err)
	}
	text := answer.Error.Message
	if r.Code != code || answer.Error.Code != code.String() || !strings.HasPrefix(text, string(op)+": ") || !strings.Contains(text, says) || strings.ContainsFunc(text, abi.Hidden) {
		t.Errorf("%s %.200s\ngot  %s %s\nwant %s ... %s", op, body, r.Code, text, code, says)
	}
}

func TestOperations(t *testing.T) {
	s := kv.New(openStore(t), nil)
	for _, c := range []struct {
		op         abi.Op
		body, want string
	}{
		{abi.OpKVGet, `{"key":"a"}`, `ok {"found":false,"value":""}`},
		{abi.OpKVSet, `{"key":"a","value":"one\u0000\n"}`, `ok {"stored":true,"version":1}`},
		{abi.OpKVGet, `{"key":"a"}`, `ok {"found":true,"value":"one\u0000\n","version":1}`},
		{abi.OpKVGet, `{"key":"a","base64":true}`, `ok {"found":true,"value":"b25lAAo=","version":1}`},
		{abi.OpKVSet, `{"key":"b","value":"/wA=","base64":true,"ttl":60}`, `ok {"stored":true,"version":2,"expires":"2026-11-30T12:01:00Z"}`},
		{abi.OpKVGet, `{"key":"b","base64":true}`, `ok {"found":true,"value":"/wA=","version":2,"expires":"2026-11-30T12:01:00Z"}`},
		{abi.OpKVSet, `{"key":"a","value":"","ifVersion":1}`, `ok {"stored":true,"version":3}`},
		{abi.OpKVSet, `{"key":"a","value":"two","ifVersion":1}`, `ok {"stored":false,"version":3}`},
		{abi.OpKVSet, `{"key":"a","value":"two","ifVersion":0}`, `ok {"stored":false,"version":3}`},
		{abi.OpKVSet, `{"key":"c","value":"two","ifVersion":9}`, `ok {"stored":false}`},
		{abi.OpKVGet, `{"key":"a"}`, `ok {"found":true,"value":"","version":3}`},
		{abi.OpKVSet, `{"key":"c/1","value":"x"}`, `ok {"stored":true,"version":4}`},
		{abi.OpKVGet, `{"prefix":""}`, `ok {"keys":["a","b","c/1"]}`},
		{abi.OpKVGet, `{"prefix":"","limit":2}`, `ok {"keys":["a","b"],"more":true}`},
		{abi.OpKVGet, `{"prefix":"","limit":1,"after":"b"}`, `ok {"keys":["c/1"]}`},
		{abi.OpKVGet, `{"prefix":"c/"}`, `ok {"keys":["c/1"]}`},
		{abi.OpKVGet, `{"prefix":"d"}`, `ok {"keys":[]}`},
		{abi.OpKVDelete, `{"key":"a","ifVersion":1}`, `ok {"deleted":false,"version":3}`},
		{abi.OpKVDelete, `{"key":"a","ifVersion":3}`, `ok {"deleted":true}`},
		{abi.OpKVDelete, `{"key":"a"}`, `ok {"deleted":false}`},
		{abi.OpKVDelete, `{"key":"a","ifVersion":3}`, `ok {"deleted":false}`},
	} {
		does(t, s, notes(), c.op, c.body, c.want)
	}
}

func TestBodiesThatAreWrong(t *testing.T) {
	s := kv.New(openStore(t), nil)
	does(t, s, notes(), abi.OpKVSet, `{"key":"binary","value":"/w==","base64":true}`, `ok {"stored":true,"version":1}`)
	for _, c := range []struct {
		op         abi.Op
		body, says string
	}{
		{abi.OpKVGet, ``, "offset 0"},
		{abi.OpKVGet, `[]`, "type array, allowed is an object"},
		{abi.OpKVGet, `null`, "type null, allowed is an object"},
		{abi.OpKVGet, `{}`, "one of key and prefix must be there"},
		{abi.OpKVGet, `{"key":"a","prefix":"a"}`, "one of key and prefix must be there"},
		{abi.OpKVGet, `{"key":"a","after":"b"}`, "after and limit go with prefix"},
		{abi.OpKVGet, `{"key":"a","limit":1}`, "after and limit go with prefix"},
		{abi.OpKVGet, `{"prefix":"a","base64":true}`, "base64 goes with key"},
		{abi.OpKVGet, `{"prefix":"a","limit":1001}`, "limit is 1001, allowed are 1 to 1000"},
		{abi.OpKVGet, `{"prefix":"a","limit":-1}`, "limit is -1"},
		{abi.OpKVGet, `{"prefix":null}`, "prefix is null"},
		{abi.OpKVGet, `{"key":null}`, "key is null"},
		{abi.OpKVGet, `{"key":"a","key":"b"}`, "key"},
		{abi.OpKVGet, `{"KEY":"a"}`, `unknown name "KEY", allowed are key, base64, prefix, after, limit`},
		{abi.OpKVGet, `{"key":"a","\u202e":1}`, `unknown name "\u202e"`},
		{abi.OpKVGet, `{"key":{"a":1}}`, "nest"},
		{abi.OpKVGet, `{"key":7}`, "key is of type number, allowed is a string"},
		{abi.OpKVGet, `{"key":"a","base64":"yes"}`, "base64 is of type string, allowed is true or false"},
		{abi.OpKVGet, "{\"key\":\"a\xff\"}", "UTF-8"},
		{abi.OpKVGet, `{"key":"binary"}`, "not UTF-8: ask for it with base64: true"},
		{abi.OpKVSet, `{"key":"a"}`, "value must be there"},
		{abi.OpKVSet, `{"key":"a","value":null}`, "value is null"},
		{abi.OpKVSet, `{"value":"a"}`, "a key of 0 bytes"},
		{abi.OpKVSet, `{"key":"a","value":"\ud800"}`, "surrogate"},
		{abi.OpKVSet, `{"key":"a","value":"!","base64":true}`, "not standard base64"},
		{abi.OpKVSet, `{"key":"a","value":"/x==","base64":true}`, "not standard base64"},
		{abi.OpKVSet, `{"key":"a","value":"","ttl":-1}`, "ttl is -1 seconds, allowed are 1 to 315360000"},
		{abi.OpKVSet, `{"key":"a","value":"","ttl":315360001}`, "ttl is 315360001 seconds"},
		{abi.OpKVSet, `{"key":"a","value":"","ttl":1.5}`, "ttl is of type number 1.5, allowed is a whole number"},
		{abi.OpKVSet, `{"key":"a","value":"","ttl":1e99}`, "allowed is a whole number"},
		{abi.OpKVSet, `{"key":"a","value":"","ifVersion":-1}`, "ifVersion is -1, allowed are 0 and more"},
		{abi.OpKVDelete, `{}`, "a key of 0 bytes"},
		{abi.OpKVDelete, `{"key":"a","ifVersion":-1}`, "ifVersion is -1"},
		{abi.OpKVDelete, `{"key":"a","value":"b"}`, `unknown name "value"`},
		{abi.OpHTTP, `{"key":"a"}`, "no operation on values"},
	} {
		if c.op == abi.OpHTTP {
			does(t, s, notes(), c.op, c.body, `invalid {"error":{"code":"invalid","message":"no operation on values"}}`)
			continue
		}
		refuses(t, s, notes(), c.op, c.body, abi.Invalid, c.says)
	}
	does(t, s, notes(), abi.OpKVGet, `{"prefix":""}`, `ok {"keys":["binary"]}`)
}

func TestC03_KeysThatLeadElsewhere(t *testing.T) {
	s := kv.New(openStore(t), nil)
	long := strings.Repeat("k", abi.KVMaxKey)
	for _, key := range []string{
		"", ".", "..", "../a", "a/..", "a/../b", "a/./b", "/a", "a/", "a//b", "//", `..\\a`, `a\\b`, "a b", "a%2fb", "a\\u0000b", "a\\nb",
		"ä", "a\\u202eb", "*", "a?", "~", "$a", "a;b", "'a'", "a,b", "\\ud83d\\ude00", "c:\\\\a", long + "k",
	} {
		for op, body := range map[abi.Op]string{
			abi.OpKVGet: `{"key":"%s"}`, abi.OpKVSet: `{"key":"%s","value":"v"}`, abi.OpKVDelete: `{"key":"%s"}`,
		} {
			refuses(t, s, notes(), op, fmt.Sprintf(body, key), abi.Invalid, "allowed are")
		}
	}
	for _, prefix := range []string{"/", "a//", "../", "./", "a/../", "a\\u0000", "ä", "%", long + "k"} {
		for _, body := range []string{`{"prefix":"%s"}`, `{"prefix":"","after":"%s"}`} {
			r := s.Serve(t.Context(), notes(), abi.Request{Op: abi.OpKVGet, Body: fmt.Appendf(nil, body, prefix)})
			if r.Code != abi.Invalid {
				t.Errorf("%q: %s %s", prefix, r.Code, r.Body)
			}
		}
	}
	for _, key := range []string{"a", "A", "0", "a/b", "...", ".a", "a..b", "a.b/c-d/e_f:g@h+i=j", long} {
		set := s.Serve(t.Context(), notes(), abi.Request{Op: abi.OpKVSet, Body: fmt.Appendf(nil, `{"key":%q,"value":"v"}`, key)})
		got := s.Serve(t.Context(), notes(), abi.Request{Op: abi.OpKVGet, Body: fmt.Appendf(nil, `{"key":%q}`, key)})
		if set.Code != abi.OK || !bytes.Contains(got.Body, []byte(`"found":true`)) {
			t.Errorf("%q: %s, %s", key, set.Body, got.Body)
		}
	}
	for _, prefix := range []string{"", ".", "..", "a/", "a/b", long} {
		does := s.Serve(t.Context(), notes(), abi.Request{Op: abi.OpKVGet, Body: fmt.Appendf(nil, `{"prefix":%q}`, prefix)})
		if does.Code != abi.OK {
			t.Errorf("prefix %q: %s", prefix, does.Body)
		}
	}
}

func TestP12_SpacesAreApart(t *testing.T) {
	s := kv.New(openStore(t), nil)
	all := []kv.Access{
		{Module: "a", Tenant: "b"}, {Module: "a", Tenant: ""}, {Module: "a", Tenant: "b/c"}, {Module: "a", Tenant: "b/"},
		{Module: "ab", Tenant: ""}, {Module: "A", Tenant: "b"}, {Module: "a", Tenant: "B"}, {Module: "..", Tenant: "a"},
	}
	for i, a := range all {
		a.Writer = "test"
		does(t, s, a, abi.OpKVGet, `{"key":"key"}`, `ok {"found":false,"value":""}`)
		does(t, s, a, abi.OpKVSet, fmt.Sprintf(`{"key":"key","value":"%d"}`, i), `ok {"stored":true,"version":1}`)
	}
	for i, a := range all {
		does(t, s, a, abi.OpKVGet, `{"key":"key"}`, fmt.Sprintf(`ok {"found":true,"value":"%d","version":1}`, i))
		does(t, s, a, abi.OpKVGet, `{"prefix":""}`, `ok {"keys":["key"]}`)
	}
	for _, module := range []string{"", "a/b", "/"} {
		refuses(t, s, kv.Access{Module: module, Writer: "test"}, abi.OpKVGet, `{"key":"key"}`, abi.Unavailable, "cannot be reached")
	}
}

func TestP12_ValuesAreBounded(t *testing.T) {
	db := openStore(t)
	s := kv.New(db, nil)
	value := func(n int) string { return fmt.Sprintf(`{"key":"key","value":"%s"}`, strings.Repeat("v", n)) }
	wide := notes()
	wide.MaxBytes = 1 << 30
	refuses(t, s, wide, abi.OpKVSet, value(abi.KVMaxValue+1), abi.Limit, "more than 1 MiB: split it")
	does(t, s, wide, abi.OpKVSet, value(abi.KVMaxValue), `ok {"stored":true,"version":1}`)
	refuses(t, s, notes(), abi.OpKVSet, value(kv.DefaultMaxBytes-len("key")-64+1), abi.Limit,
		"the module would keep 1048577 bytes, at most 1048576: delete values, or keep smaller ones")
	does(t, s, notes(), abi.OpKVSet, value(kv.DefaultMaxBytes-len("key")-64), `ok {"stored":true,"version":2}`)
	narrow := notes()
	narrow.Tenant, narrow.MaxBytes = "other", 100
	refuses(t, s, narrow, abi.OpKVSet, value(34), abi.Limit, "the module would keep 101 bytes, at most 100")
	does(t, s, narrow, abi.OpKVSet, value(33), `ok {"stored":true,"version":1}`)

	err := db.View(t.Context(), func(tx store.Tx) error {
		e, found, err := tx.KVGet("notes.wasm/local", "key")
		if !found || e.Writer != "call 7" {
			t.Errorf("found %t, written by %q", found, e.Writer)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTimeToLive(t *testing.T) {
	s := kv.New(openStore(t), nil)
	for i, c := range []struct {
		granted time.Duration
		asked   string
		want    string
	}{
		{0, ``, ``},
		{0, `,"ttl":0`, ``},
		{0, `,"ttl":60`, `,"expires":"2026-11-30T12:01:00Z"`},
		{time.Hour, ``, `,"expires":"2026-11-30T13:00:00Z"`},
		{time.Hour, `,"ttl":60`, `,"expires":"2026-11-30T12:01:00Z"`},
		{time.Hour, `,"ttl":7200`, `,"expires":"2026-11-30T13:00:00Z"`},
		{0, `,"ttl":315360000`, `,"expires":"2036-11-27T12:00:00Z"`},
	} {
		a := notes()
		a.TTL = c.granted
		does(t, s, a, abi.OpKVSet, `{"key":"key","value":""`+c.asked+`}`, fmt.Sprintf(`ok {"stored":true,"version":%d%s}`, i+1, c.want))
	}
}

// broken is a store of which every method fails.
type broken struct{ err error }

func (b broken) KVGet(context.Context, string, string) ([]byte, int64, time.Time, error) {
	return nil, 0, time.Time{}, b.err
}

func (b broken) KVPut(context.Context, string, string, string, []byte, time.Duration, int64, int64) (int64, time.Time, error) {
	return 0, time.Time{}, b.err
}

func (b broken) KVDelete(context.Context, string, string, int64) (bool, error) { return false, b.err }

func (b broken) KVKeys(context.Context, string, string, string, int) ([]string, error) {
	return nil, b.err
}

// A guest is not told what is wrong with the host; its log is.
func TestStoreThatFails(t *testing.T) {
	var log bytes.Buffer
	s := kv.New(broken{errors.New("disk of /srv/state is on fire")}, slog.New(slog.NewTextHandler(&log, nil)))
	for op, body := range map[abi.Op]string{
		abi.OpKVGet: `{"key":"a"}`, abi.OpKVSet: `{"key":"a","value":""}`, abi.OpKVDelete: `{"key":"a"}`,
	} {
		does(t, s, notes(), op, body, fmt.Sprintf(
			`unavailable {"error":{"code":"unavailable","message":"%s: values cannot be reached now: try again later"}}`, op))
		if !strings.Contains(log.String(), "op="+string(op)) || !strings.Contains(log.String(), "on fire") {
			t.Errorf("%s: log %q", op, &log)
		}
	}
	does(t, s, notes(), abi.OpKVGet, `{"prefix":""}`,
		`unavailable {"error":{"code":"unavailable","message":"kv_get: values cannot be reached now: try again later"}}`)
}

// A store that fails for long is told of now and then, and that it is over once.
func TestStoreThatFailsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store := &broken{errors.New("no room")}
		s := kv.New(store, slog.New(slog.NewTextHandler(&log, nil)))
		set := func() {
			s.Serve(t.Context(), notes(), abi.Request{Op: abi.OpKVSet, Body: []byte(`{"key":"a","value":""}`)})
		}
		for range 150 {
			set()
			time.Sleep(time.Second)
		}
		if lines := strings.Count(log.String(), "no room"); lines != 3 {
			t.Errorf("told %d times in 150 s, want 3", lines)
		}
		store.err = nil
		set()
		set()
		store.err = errors.New("no room")
		set()
		if again, lines := strings.Count(log.String(), "serves modules again"), strings.Count(log.String(), "no room"); again != 1 || lines != 4 {
			t.Errorf("told %d times that it is over, and %d times why it is not", again, lines)
		}
	})
}

func TestCallThatHasEnded(t *testing.T) {
	db := openStore(t)
	s := kv.New(db, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for op, body := range map[abi.Op]string{
		abi.OpKVGet: `{"key":"a"}`, abi.OpKVSet: `{"key":"a","value":""}`, abi.OpKVDelete: `{"key":"a"}`,
	} {
		if r := s.Serve(ctx, notes(), abi.Request{Op: op, Body: []byte(body)}); r.Code != abi.Cancelled {
			t.Errorf("%s: %s %s", op, r.Code, r.Body)
		}
	}
	does(t, s, notes(), abi.OpKVGet, `{"key":"a"}`, `ok {"found":false,"value":""}`)
}

// Whatever a guest sends, it gets JSON back that fits the wall, and touches no
// other space.
func FuzzServe(f *testing.F) {
	db := openStore(f)
	s := kv.New(db, nil)
	f.Add(0, []byte(`{"key":"a/b","base64":true}`))
	f.Add(1, []byte(`{"key":"a","value":"v","ttl":5,"ifVersion":1}`))
	f.Add(2, []byte(`{"key":"../a"}`))
	f.Add(0, []byte(`{"prefix":"a","after":"b","limit":5}`))
	ops := []abi.Op{abi.OpKVGet, abi.OpKVSet, abi.OpKVDelete}
	f.Fuzz(func(t *testing.T, op int, body []byte) {
		r := s.Serve(t.Context(), notes(), abi.Request{Op: ops[uint(op)%3], Body: body})
		if !json.Valid(r.Body) || len(r.Body) > 8<<20 {
			t.Errorf("%d bytes: %.200s", len(r.Body), r.Body)
		}
		if _, values, err := db.KVUsage(t.Context(), "other.wasm/local"); err != nil || values != 0 {
			t.Errorf("%d values of another module, %v", values, err)
		}
	})
}

func ExampleService() {
	// A grant of kv, 4 KiB, for a day:
	access := kv.Access{Module: "notes.wasm", Tenant: "local", Writer: "call 1", MaxBytes: 4 << 10, TTL: 24 * time.Hour}
	s := kv.New(broken{errors.New("no disk")}, nil)
	r := s.Serve(context.Background(), access, abi.Request{Op: abi.OpKVSet, Body: []byte(`{"key":"../secret","value":"x"}`)})
	fmt.Println(r.Code)
	r = s.Serve(context.Background(), access, abi.Request{Op: abi.OpKVSet, Body: []byte(`{"key":"notes/1","value":"x"}`)})
	fmt.Println(r.Code)
	// Output:
	// invalid
	// unavailable
}
