package access

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// What a token's text may be, and what of it is an id: a plain rule each, as they stand
// before anything is looked up.
func TestRulesOfTexts(t *testing.T) {
	is := func(got bool) string {
		if got {
			return "is"
		}
		return "is not"
	}
	for text, want := range map[string]bool{
		"a": true, "aZ09-._~+/": true, "a==": true, "": false, "=": false, "a=b": false, "a b": false,
		"a!": false, "a:": false, "a@": false, "a[": false, "a`": false, "a{": false, "a\x00": false, "é": false,
	} {
		if got := isToken68(text); got != want {
			t.Errorf("%q %s one word", text, is(got))
		}
	}
	good := prefix + "abcdefgh" + "_" + strings.Repeat("A", secretLength)
	for text, want := range map[string]bool{
		good: true, good + "A": false, good[:len(good)-1]: false, "hutcx_" + good[len(prefix):]: false,
		prefix + "abcdefg1" + good[len(prefix)+idLength:]:                     false, // no letter of base32
		prefix + "Abcdefgh" + good[len(prefix)+idLength:]:                     false,
		prefix + "abcdefghi" + "_" + strings.Repeat("A", secretLength-1):      false,
		prefix + "abcdefg" + "_" + strings.Repeat("A", secretLength+1):        false,
		prefix + "abcdefgh" + "_" + strings.Repeat("A", secretLength-1) + "a": false,
	} {
		if _, got := idOf(text); got != want {
			t.Errorf("%q %s the text of a token", text, is(got))
		}
	}
	for host, want := range map[string]bool{"a-b": true, "a-.b": false, "-a": false, "a..b": false, "a_b": true, "a b": false, strings.Repeat("a", 64): false} {
		if got := CheckHost(host) == nil; got != want {
			t.Errorf("%q %s a host", host, is(got))
		}
	}
	for origin, want := range map[string]bool{
		"https://a": true, "http://a:443": true, "https://a:80": true, "http://a:80": false, "https://a:443": false, "null": false,
		"https://": false, "https:///x": false, "https://a/": false, "https://A": false, "https://[": false, "://a": false,
	} {
		if got := CheckOrigin(origin) == nil; got != want {
			t.Errorf("%q %s an origin", origin, is(got))
		}
	}
}

// Only an OPTIONS that asks for a method is what a browser asks beforehand; everything else
// comes to the door.
func TestOnlyPreflightsAreAnsweredBeforeTheDoor(t *testing.T) {
	good, _, err := New("ci", "alice", nil, time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	k := newKeys(nil, time.Now)
	k.take(good)
	d := NewDoor(k, Options{Origins: []string{"https://app.example.org"}})
	for name, tt := range map[string]struct {
		method, asks string
		code         int
	}{
		"preflight":       {"OPTIONS", "POST", http.StatusNoContent},
		"OPTIONS alone":   {"OPTIONS", "", http.StatusUnauthorized},
		"another method":  {"POST", "POST", http.StatusUnauthorized},
		"neither of them": {"GET", "", http.StatusUnauthorized},
	} {
		r := httptest.NewRequest(tt.method, "/mcp", nil)
		r.Host = "localhost"
		r.Header.Set("Origin", "https://app.example.org")
		if tt.asks != "" {
			r.Header.Set("Access-Control-Request-Method", tt.asks)
		}
		w := httptest.NewRecorder()
		d.Wrap(http.NotFoundHandler()).ServeHTTP(w, r)
		if w.Code != tt.code {
			t.Errorf("%s: %d, want %d", name, w.Code, tt.code)
		}
	}
}

// There is metadata of what it was said that there is, wherever the route is put.
func TestMetadataOfNothingElse(t *testing.T) {
	d := NewDoor(newKeys(nil, time.Now), Options{Closed: true, Resources: []string{"/mcp"}})
	for path, want := range map[string]int{
		metadataPath: 200, metadataPath + "/mcp": 200, metadataPath + "/other": 404, "/mcp": 404, "/": 404,
	} {
		w := httptest.NewRecorder()
		d.Metadata(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// A token that could not have been made is not kept.
func TestKeysAreChecked(t *testing.T) {
	k := newKeys(nil, time.Now) // what is not refused would be kept nowhere
	if err := k.Add(t.Context(), Token{ID: "abcdefgh", Name: "ci", Principal: "alice"}); err == nil || k.Len() != 0 {
		t.Errorf("%v", err)
	}
	good, text, err := New("ci", "alice", nil, time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	k.take(good)
	other := text[:len(text)-1] + map[bool]string{true: "B", false: "A"}[strings.HasSuffix(text, "A")]
	if _, err := k.find(other); !errors.Is(err, errUnknown) {
		t.Errorf("another secret: %v", err)
	}
}

// Who cannot be told apart counts as one; a clock that is set back begins anew.
func TestStrikesOfUnknownSources(t *testing.T) {
	now := time.Now()
	s := strikes{now: func() time.Time { return now }}
	for i := range MaxFailures + 1 {
		from := []string{"", "nowhere", "host:1", "@"}[i%4]
		wait, _ := s.add(from)
		if (wait > 0) != (i == MaxFailures) {
			t.Errorf("wrong token %d from %q: wait %v", i+1, from, wait)
		}
	}
	now = now.Add(-time.Hour)
	if wait, _ := s.add("nowhere"); wait > 0 {
		t.Errorf("wait %v after the clock was set back", wait)
	}
	for i := range maxAddresses {
		s.add(string(rune('a'+i%26)) + ":1")
		s.add("[2001:db8:0:" + hex(i) + "::1]:1")
	}
	if n := len(s.count); n > maxAddresses+1 {
		t.Errorf("%d addresses are told apart", n)
	}
	known := "[2001:db8:0:1::2]:9"
	before := s.count["2001:db8:0:1::/64"]
	if s.add(known); s.count["2001:db8:0:1::/64"] != before+1 {
		t.Errorf("an address that was told apart counts for others: %d, was %d", s.count["2001:db8:0:1::/64"], before)
	}
}

func hex(n int) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[n>>8&15], digits[n>>4&15], digits[n&15]})
}
