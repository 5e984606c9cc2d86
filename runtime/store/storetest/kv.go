package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/store"
)

func testKV(t *testing.T, db *store.DB, clock *Clock) {
	holds(t, db, "space", "key", "")
	put(t, db, "space", "key", "value")
	holds(t, db, "space", "key", "value")
	put(t, db, "space", "key", "other")
	holds(t, db, "space", "key", "other")
	holds(t, db, "space", "KEY", "")
	binary := bytes.Repeat([]byte{0, 0xff, '\n', 0xc0}, 50_000) // beyond a page
	put(t, db, "space", "binary", string(binary))
	err := db.View(t.Context(), func(tx store.Tx) error {
		e, ok, err := tx.KVGet("space", "binary")
		if !ok || !bytes.Equal(e.Value, binary) || e.Writer != "test" || !e.Updated.Equal(clock.Now()) || !e.Expires.IsZero() {
			t.Errorf("found %t, %d bytes, writer %q, updated %s, expires %s", ok, len(e.Value), e.Writer, e.Updated, e.Expires)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, empty := range [][]byte{nil, {}} {
		if _, _, err := db.KVPut(t.Context(), "space", "empty", "test", empty, 0, store.AnyVersion, roomy); err != nil {
			t.Fatal(err)
		}
		if value, version, _, err := db.KVGet(t.Context(), "space", "empty"); err != nil || version == 0 || len(value) != 0 {
			t.Errorf("empty value: %q, version %d, %v", value, version, err)
		}
	}
	for _, want := range []bool{true, false} {
		if deleted, err := db.KVDelete(t.Context(), "space", "key", store.AnyVersion); err != nil || deleted != want {
			t.Errorf("deleted %t, %v, want %t", deleted, err, want)
		}
	}
	holds(t, db, "space", "key", "")
}

func testVersions(t *testing.T, db *store.DB, clock *Clock) {
	try := func(ifVersion, wantFound int64) int64 {
		t.Helper()
		version, _, err := db.KVPut(t.Context(), "space", "key", "test", []byte("v"), time.Hour, ifVersion, roomy)
		conflict(t, err, wantFound)
		return version
	}
	const fine = -1
	try(7, 0)
	first := try(0, fine)
	try(0, first)
	second := try(first, fine)
	try(first, second)
	_, err := db.KVDelete(t.Context(), "space", "key", first)
	conflict(t, err, second)
	if deleted, err := db.KVDelete(t.Context(), "space", "key", second); !deleted || err != nil {
		t.Errorf("deleted %t, %v", deleted, err)
	}
	_, err = db.KVDelete(t.Context(), "space", "key", second)
	conflict(t, err, 0)
	_, err = db.KVDelete(t.Context(), "nowhere", "key", second)
	conflict(t, err, 0)
	third := try(0, fine)
	if first >= second || second >= third {
		t.Errorf("versions %d, %d, and after a deletion %d", first, second, third)
	}
	clock.Add(time.Hour) // what has expired is not there
	try(third, 0)
	if _, err := db.KVDelete(t.Context(), "space", "key", third); err == nil {
		t.Error("deleted by the version it had")
	}
	try(0, fine)
}

// conflict fails unless err says that the version found is there; -1 stands for no
// error.
func conflict(t *testing.T, err error, found int64) {
	t.Helper()
	var e *store.VersionError
	switch {
	case found < 0 && err != nil:
		t.Error(err)
	case found >= 0 && (!errors.As(err, &e) || e.CurrentVersion() != found):
		t.Errorf("got %v, want version %d", err, found)
	}
}

func testQuota(t *testing.T, db *store.DB, clock *Clock) {
	const room = 3 * (store.EntryOverhead + 10)
	try := func(key string, size int, ttl time.Duration, wantUsed int64) {
		t.Helper()
		_, _, err := db.KVPut(t.Context(), "space", key, "test", make([]byte, size), ttl, store.AnyVersion, room)
		var e *store.QuotaError
		if wantUsed == 0 && err != nil || wantUsed > 0 && (!errors.As(err, &e) || e.Used != wantUsed || e.Most != room) {
			t.Errorf("%s: %v, want %d of %d bytes", key, err, wantUsed, room)
		}
	}
	try("a", 9, 0, 0)
	try("b", 9, time.Minute, 0)
	try("c", 10, 0, room+1)
	try("c", 9, 0, 0)
	usage(t, db, "space", room, 3)
	try("c", 10, 0, room+1)
	try("d", 0, 0, room+store.EntryOverhead+1)
	try("a", 0, 0, 0)
	try("c", 18, 0, 0)
	usage(t, db, "space", room, 3)
	clock.Add(time.Minute) // what has expired makes room at once
	usage(t, db, "space", room-store.EntryOverhead-10, 2)
	try("b", 10, 0, room+1) // and only once, even where it was
	try("d", 9, 0, 0)
	usage(t, db, "space", room, 3)
	try("b", 0, 0, room+store.EntryOverhead+1)
	if _, err := db.KVDelete(t.Context(), "space", "c", store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	try("e", 18, 0, 0)
	usage(t, db, "space", room, 3)
	usage(t, db, "nowhere", 0, 0)
}

func testExpiry(t *testing.T, db *store.DB, clock *Clock) {
	start := clock.Now()
	const values = 1200 // more than are removed in one go
	for i := range values {
		_, expires, err := db.KVPut(t.Context(), "space", fmt.Sprint("short", i), "test", []byte("v"), time.Minute, store.AnyVersion, roomy)
		if err != nil || !expires.Equal(start.Add(time.Minute)) {
			t.Fatalf("expires %s, %v", expires, err)
		}
	}
	put(t, db, "space", "kept", "for ever")
	put(t, db, "space", "short0", "for ever by now")
	clock.Add(time.Minute - time.Millisecond)
	holds(t, db, "space", "short1", "v")
	if n, err := db.Sweep(t.Context()); err != nil || n != 0 {
		t.Errorf("swept %d too early, %v", n, err)
	}
	clock.Add(time.Millisecond)
	holds(t, db, "space", "short1", "")
	if keys, err := db.KVKeys(t.Context(), "space", "", "", 10); err != nil || !slices.Equal(keys, []string{"kept", "short0"}) {
		t.Errorf("keys %q, %v", keys, err)
	}
	if deleted, err := db.KVDelete(t.Context(), "space", "short1", store.AnyVersion); deleted || err != nil {
		t.Errorf("deleted what had expired: %t, %v", deleted, err)
	}
	if n, err := db.Sweep(t.Context()); err != nil || n != values-2 {
		t.Errorf("swept %d, %v, want %d", n, err, values-2)
	}
	holds(t, db, "space", "kept", "for ever")
	holds(t, db, "space", "short0", "for ever by now")
	room := int64(2*store.EntryOverhead + len("kept"+"for ever"+"short0"+"for ever by now"))
	usage(t, db, "space", room, 2)
	_, _, err := db.KVPut(t.Context(), "space", "x", "test", nil, 0, store.AnyVersion, room+store.EntryOverhead+1)
	if err != nil {
		t.Errorf("a sweep gives all its room back: %v", err)
	}
}

func testKeys(t *testing.T, db *store.DB, _ *Clock) {
	for _, key := range []string{"b", "a/2", "a/1", "a", "a0", "é", "\ud7ff", "\ue000", "\U0010ffff", "A"} {
		put(t, db, "space", key, "v")
	}
	put(t, db, "other", "a/9", "v")
	for _, c := range []struct {
		prefix, after string
		limit         int
		want          []string
	}{
		{"", "", 100, []string{"A", "a", "a/1", "a/2", "a0", "b", "é", "\ud7ff", "\ue000", "\U0010ffff"}},
		{"a", "", 100, []string{"a", "a/1", "a/2", "a0"}},
		{"a/", "", 100, []string{"a/1", "a/2"}},
		{"a/", "a/1", 100, []string{"a/2"}},
		{"a/", "b", 100, nil},
		{"a", "a", 2, []string{"a/1", "a/2"}},
		{"\ud7ff", "", 100, []string{"\ud7ff"}},
		{"\U0010ffff", "", 100, []string{"\U0010ffff"}},
		{"%", "", 100, nil},
		{"", "", 0, nil},
		{"", "", -1, nil},
	} {
		got, err := db.KVKeys(t.Context(), "space", c.prefix, c.after, c.limit)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q after %q, %d: %q, %v, want %q", c.prefix, c.after, c.limit, got, err, c.want)
		}
	}
	err := db.Update(t.Context(), func(tx store.Tx) error {
		var all []error
		for i := range 1001 {
			_, _, err := tx.KVPut(write("many", fmt.Sprint(i), "v"))
			all = append(all, err)
		}
		return errors.Join(all...)
	})
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := db.KVKeys(t.Context(), "many", "", "", 5000); err != nil || len(keys) != 1000 {
		t.Errorf("%d keys at once, %v, want 1000", len(keys), err)
	}
}

func testBounds(t *testing.T, db *store.DB, _ *Clock) {
	long := strings.Repeat("k", 512)
	put(t, db, long, long, "v")
	holds(t, db, long, long, "v")
	for name, spoil := range map[string]func(*store.KVWrite){
		"no space":       func(w *store.KVWrite) { w.Space = "" },
		"no key":         func(w *store.KVWrite) { w.Key = "" },
		"no writer":      func(w *store.KVWrite) { w.Writer = "" },
		"long space":     func(w *store.KVWrite) { w.Space = long + "k" },
		"long key":       func(w *store.KVWrite) { w.Key = long + "k" },
		"long writer":    func(w *store.KVWrite) { w.Writer = long + "k" },
		"key, not UTF-8": func(w *store.KVWrite) { w.Key = "\xc0\x80" },
		"key, zero byte": func(w *store.KVWrite) { w.Key = "a\x00b" },
		"long value":     func(w *store.KVWrite) { w.Value = make([]byte, 16<<20+1) },
		"negative TTL":   func(w *store.KVWrite) { w.TTL = -1 },
	} {
		w := write("space", "key", "value")
		spoil(&w)
		err := db.Update(t.Context(), func(tx store.Tx) error { _, _, err := tx.KVPut(w); return err })
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := db.KVPut(t.Context(), "space", "large", "test", make([]byte, 16<<20), 0, store.AnyVersion, roomy); err != nil {
		t.Errorf("the largest value: %v", err)
	}
}

// Names that look alike are different spaces, and none leads into another.
func testSpaces(t *testing.T, db *store.DB, _ *Clock) {
	spaces := []string{"a", "A", "a/", "a/b", "%", "_", "a'; drop table kv; --", "../a", "ä", "a\u0308"}
	for _, space := range spaces {
		put(t, db, space, "key", "of "+space)
	}
	for _, space := range spaces {
		holds(t, db, space, "key", "of "+space)
		if keys, err := db.KVKeys(t.Context(), space, "", "", 10); err != nil || len(keys) != 1 {
			t.Errorf("%q: keys %q, %v", space, keys, err)
		}
		usage(t, db, space, store.EntryOverhead+int64(len("key"+"of "+space)), 1)
	}
}

func testKVForget(t *testing.T, db *store.DB, clock *Clock) {
	for _, space := range []string{"a.wasm/ann", "a.wasm/ben", "a.wasm2/ann", "a.was/ann", "b.wasm/a.wasm/"} {
		put(t, db, space, "key", "value")
		put(t, db, space, "other", "value")
	}
	if _, _, err := db.KVPut(t.Context(), "a.wasm/ann", "ends", "test", nil, time.Minute, store.AnyVersion, roomy); err != nil {
		t.Fatal(err)
	}
	clock.Add(time.Hour)
	count := func(prefix string, want int64) {
		t.Helper()
		if got, err := db.KVCount(t.Context(), prefix); err != nil || got != want {
			t.Errorf("%q: %d values, %v, want %d", prefix, got, err, want)
		}
	}
	count("a.wasm/", 4)
	if err := db.KVForget(t.Context(), "a.wasm/"); err != nil {
		t.Fatal(err)
	}
	holds(t, db, "a.wasm/ann", "key", "")
	for prefix, want := range map[string]int64{"a.wasm/": 0, "a.wasm2/": 2, "a.was/": 2, "b.wasm/": 2, "": 6} {
		count(prefix, want)
	}
	version, _, err := db.KVPut(t.Context(), "a.wasm/ann", "key", "test", []byte("new"), 0, 0, 2*store.EntryOverhead)
	if err != nil || version != 1 {
		t.Errorf("the space does not begin anew: version %d, %v", version, err)
	}
}
