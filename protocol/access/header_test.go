package access

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whatever stands in the headers, only the very text of a token opens the door, and what
// comes back is one line of a header.
func FuzzBearer(f *testing.F) {
	good, text, err := New("ci", "alice", nil, time.Now(), time.Time{})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		"", "Bearer", "Bearer ", "Bearer a", "bearer  a=", "Basic a", "Bearer a b", "Bearer\ta", "Bearer " + strings.Repeat("a", maxHeader), "Bearer " + text, "BEARER   " + text, text,
	} {
		f.Add(seed, "", false)
	}
	f.Add("Bearer a", "Bearer b", true)
	f.Fuzz(func(t *testing.T, first, second string, two bool) {
		h := http.Header{"Authorization": {first}}
		if two {
			h.Add("Authorization", second)
		}
		found, err := bearer(h)
		if err == nil && (two || !strings.HasSuffix(first, found) || !isToken68(found) || len(first) > maxHeader) {
			t.Errorf("%q was found in %q", found, h)
		}
		k := newKeys(nil, time.Now)
		k.take(good)
		r := httptest.NewRequest("POST", "/mcp", nil)
		r.Host, r.Header = "localhost", h
		w := httptest.NewRecorder()
		NewDoor(k, Options{}).Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if (w.Code == http.StatusOK) != (err == nil && found == text) {
			t.Errorf("%q: %d", first, w.Code)
		}
		if strings.ContainsAny(w.Header().Get("WWW-Authenticate"), "\r\n") || len(h) > 0 {
			t.Errorf("%q, left are %q", w.Header(), h)
		}
	})
}

func FuzzHostOf(f *testing.F) {
	for _, seed := range []string{"", "localhost", "localhost:1", "[::1]:1", "[::1", "::1", "a:b", "\u212a", "[::1%25a]", "a::1%070A"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := hostOf(text)
		if ok && (name == "" || name != strings.ToLower(name) || !isASCII(name)) {
			t.Errorf("%q: %q", text, name)
		}
	})
}

// The time that a comparison takes cannot depend on what is kept if nothing but
// subtle.ConstantTimeCompare ever sees a hash, and that with two of one length: so the
// kept one of an id that is not known has it too.
func TestHashesAreOfOneLength(t *testing.T) {
	tok, text, err := New("ci", "alice", nil, time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	k := newKeys(nil, time.Now)
	k.take(tok)
	// A hash of zeroes is what an unknown id is compared with: it must not be good.
	zero := tok
	zero.ID, zero.Hash = "zzzzzzzz", make([]byte, len(tok.Hash))
	k.take(zero)
	for id, want := range map[string]error{tok.ID: nil, "zzzzzzzz": errUnknown, "aaaaaaaa": errUnknown} {
		if _, err := k.find(prefix + id + text[len(prefix)+idLength:]); (err == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
	if !slices.Equal(hashOf(text), tok.Hash) || len(tok.Hash) != 32 {
		t.Error("another hash")
	}
}

// What a door costs a request that comes with a token.
func BenchmarkDoor(b *testing.B) {
	tok, text, err := New("ci", "alice", nil, time.Now(), time.Time{})
	if err != nil {
		b.Fatal(err)
	}
	k := newKeys(nil, time.Now)
	k.take(tok)
	h := NewDoor(k, Options{}).Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest("POST", "/mcp", nil)
	r.Host = "localhost"
	for b.Loop() {
		r.Header = http.Header{"Authorization": {"Bearer " + text}}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
