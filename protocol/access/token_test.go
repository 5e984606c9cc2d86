package access_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// newToken makes a token that never expires.
func newToken(t testing.TB, name, principal string, scopes ...string) (access.Token, string) {
	t.Helper()
	tok, text, err := access.New(name, principal, scopes, noon, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return tok, text
}

// memory is a store that keeps nothing for longer than it lives.
type memory struct {
	all  []access.Token
	fail error
}

func (m *memory) AddToken(_ context.Context, t access.Token) error {
	if m.fail != nil {
		return m.fail
	}
	if slices.ContainsFunc(m.all, func(o access.Token) bool { return o.Name == t.Name || o.ID == t.ID }) {
		return access.ErrTaken
	}
	m.all = append(m.all, t)
	return nil
}

func (m *memory) RevokeToken(_ context.Context, name string) (bool, error) {
	n := len(m.all)
	m.all = slices.DeleteFunc(m.all, func(t access.Token) bool { return t.Name == name })
	return len(m.all) < n, m.fail
}

func (m *memory) Tokens(context.Context) ([]access.Token, error) { return slices.Clone(m.all), m.fail }

func openKeys(t testing.TB, all ...access.Token) *access.Keys {
	t.Helper()
	k, err := access.OpenKeys(t.Context(), &memory{all: all}, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestNewToken(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		tok, text := newToken(t, "ci", "alice", access.ThreadsRead, access.Admin, access.Admin)
		if !strings.HasPrefix(text, "hutch_"+tok.ID+"_") || len(text) != 41 || seen[text] || seen[tok.ID] {
			t.Fatalf("%d characters, or seen before", len(text))
		}
		seen[text], seen[tok.ID] = true, true
		if !slices.Equal(tok.Scopes, []string{access.Admin, access.ThreadsRead}) || strings.Contains(fmt.Sprintf("%v %s", tok, tok.Hash), text[15:]) {
			t.Fatalf("kept is %v", tok)
		}
	}
}

func TestCheckToken(t *testing.T) {
	good, _ := newToken(t, "ci", "alice", "tasks:read")
	for _, c := range []struct {
		change func(*access.Token)
		want   string
	}{
		{func(t *access.Token) { t.ID = "ABCDEFGH" }, "an id that is none"},
		{func(t *access.Token) { t.ID = "" }, "an id that is none"},
		{func(t *access.Token) { t.Hash = t.Hash[1:] }, "a hash that is none"},
		{func(t *access.Token) { t.Created = time.Time{} }, "a token that was made at no time"},
		{func(t *access.Token) { t.Expires = t.Created }, "it expires before it was made"},
		{func(t *access.Token) { t.Scopes = []string{"tasks:read", "admin"} }, "scopes that are not sorted"},
		{func(t *access.Token) { t.Name = "" }, "name of 0 characters: allowed are 1 to 64"},
		{func(t *access.Token) { t.Name = strings.Repeat("n", 65) }, "name of 65 characters: allowed are 1 to 64"},
		{func(t *access.Token) { t.Name = "a b" }, `name "a b": allowed are letters, digits and . _ @ + -`},
		{func(t *access.Token) { t.Name = "-n" }, `name "-n": it begins with a -, or is nothing but dots`},
		{func(t *access.Token) { t.Name = ".." }, `name "..": it begins with a -, or is nothing but dots`},
		{func(t *access.Token) { t.Principal = "a\x00" }, `principal "a\x00": allowed are letters, digits and . _ @ + -`},
		{func(t *access.Token) { t.Scopes = []string{"root"} }, `scope "root": there are admin, files:read, files:write, members:read, members:self, messages:read, ` +
			`messages:write, projects:read, steps:read, steps:write, tasks:assign, tasks:force, tasks:read, tasks:take, tasks:write, threads:read`},
	} {
		bad := good
		c.change(&bad)
		if err := bad.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
	good.Name = strings.Repeat("n", 64)
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	if !slices.IsSorted(access.Scopes()) {
		t.Error("scopes are not sorted")
	}
}

func TestKeys(t *testing.T) {
	tok, _ := newToken(t, "ci", "alice")
	k := openKeys(t)
	if k.Needed() || k.Len() != 0 {
		t.Error("a token is needed where there is none")
	}
	again, _ := newToken(t, "ci", "bob")
	bad := tok
	bad.Name = ""
	if err := errors.Join(k.Add(t.Context(), tok)); err != nil {
		t.Fatal(err)
	}
	if err := k.Add(t.Context(), again); !errors.Is(err, access.ErrTaken) {
		t.Error(err)
	}
	if err := k.Add(t.Context(), bad); err == nil {
		t.Error("kept a token without a name")
	}
	if all := k.List(); len(all) != 1 || all[0].Principal != "alice" || all[0].Hash != nil {
		t.Errorf("%v", all)
	}
	if err := k.Revoke(t.Context(), "other", false); !errors.Is(err, access.ErrUnknown) {
		t.Error(err)
	}
	if err := k.Revoke(t.Context(), "ci", false); !errors.Is(err, access.ErrLast) || k.Len() != 1 || !k.Needed() {
		t.Errorf("the last token: %v", err)
	}
	more, _ := newToken(t, "more", "bob")
	if err := errors.Join(k.Add(t.Context(), more), k.Revoke(t.Context(), "ci", false)); err != nil || !k.Needed() {
		t.Errorf("one of two: %v", err)
	}
	if err := k.Revoke(t.Context(), "more", true); err != nil || k.Len() != 0 || k.Needed() {
		t.Errorf("the last token, on purpose: %v", err)
	}
	if err := k.Add(t.Context(), tok); err != nil || !k.Needed() {
		t.Errorf("the first token again: %v", err)
	}
}

// A token is used when it opens the door, and not when it fails to.
func TestWhenTokensWereUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tok, text := newToken(t, "ci", "alice")
		tok.Created, tok.Used = time.Now(), time.Now() // nobody else says when
		tok.Expires = tok.Created.Add(2 * time.Hour)
		keys, err := access.OpenKeys(t.Context(), &memory{all: []access.Token{tok}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := access.NewDoor(keys, access.Options{})
		used := func() time.Time { return keys.List()[0].Used }
		ask(d, "POST /mcp", "Authorization: Bearer "+text[:len(text)-1]+"_")
		ask(d, "POST /mcp", "Authorization: Bearer "+text[:15]+strings.Repeat("a", 26))
		if !used().IsZero() {
			t.Errorf("used %v, and it was not", used())
		}
		var last time.Time
		for range 2 {
			time.Sleep(50 * time.Minute)
			last = time.Now()
			expect(t, ask(d, "POST /mcp", "Authorization: Bearer "+text), 200, "alice ci")
			if !used().Equal(last) {
				t.Errorf("used %v, want %v", used(), last)
			}
		}
		time.Sleep(time.Hour)
		if code := ask(d, "POST /mcp", "Authorization: Bearer "+text).Code; code != 401 || !used().Equal(last) {
			t.Errorf("%d, and one that has expired was used %v", code, used())
		}
	})
}

// What could not be kept opens nothing, and what could not be revoked still does.
func TestKeysWithoutAStore(t *testing.T) {
	tok, _ := newToken(t, "ci", "alice")
	m := &memory{}
	k, err := access.OpenKeys(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	m.fail = broken
	if err := k.Add(t.Context(), tok); !errors.Is(err, broken) || k.Needed() {
		t.Errorf("%v", err)
	}
	m.fail = nil
	if err := k.Add(t.Context(), tok); err != nil {
		t.Fatal(err)
	}
	m.fail = broken
	if err := k.Revoke(t.Context(), "ci", true); !errors.Is(err, broken) || k.Len() != 1 {
		t.Errorf("%v", err)
	}
	if _, err := access.OpenKeys(t.Context(), m, nil); !errors.Is(err, broken) {
		t.Error(err)
	}
	m.fail = nil // the store has forgotten the token by now, and the door must too
	if err := k.Revoke(t.Context(), "ci", true); err != nil || k.Len() != 0 {
		t.Errorf("revoked again: %v, %d are left", err, k.Len())
	}
	if err := k.Revoke(t.Context(), "ci", true); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("revoked a third time: %v", err)
	}
}

func TestTokensAreBounded(t *testing.T) {
	k := openKeys(t)
	for i := range access.MaxTokens {
		tok, _ := newToken(t, fmt.Sprint("n", i), "alice")
		if err := k.Add(t.Context(), tok); err != nil {
			t.Fatal(err)
		}
	}
	tok, _ := newToken(t, "more", "alice")
	if err := k.Add(t.Context(), tok); !errors.Is(err, access.ErrFull) {
		t.Error(err)
	}
}

func TestNobodyIsTrusted(t *testing.T) {
	if _, ok := access.From(t.Context()); ok {
		t.Error("someone is there in an empty context")
	}
	if _, ok := access.From(access.With(t.Context(), access.Identity{})); ok {
		t.Error("an identity without a principal is someone")
	}
	if who, ok := access.From(access.With(t.Context(), access.Anyone())); !ok || who.Principal != access.Local || !who.Has(access.Admin) {
		t.Errorf("%v", who)
	}
}
