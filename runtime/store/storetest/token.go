package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/runtime/store"
)

// aToken is a token as [access.New] makes one.
func aToken(id, name string, scopes ...string) access.Token {
	return access.Token{
		ID: id, Name: name, Principal: "alice", Scopes: append([]string{}, scopes...), Hash: bytes.Repeat([]byte(id[:1]), 32),
		Created: time.Date(2026, 11, 30, 12, 0, 0, int(time.Millisecond), time.UTC),
	}
}

func testTokens(t *testing.T, db *store.DB, _ *Clock) {
	// The store is what access asks for.
	var s access.Store = db
	if all, err := s.Tokens(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("%v, %v", all, err)
	}
	one, two := aToken("bbbbbbbb", "one", "admin", "threads:read"), aToken("aaaaaaaa", "two")
	two.Expires = two.Created.Add(time.Hour)
	for _, tok := range []access.Token{two, one} {
		if err := s.AddToken(t.Context(), tok); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Tokens(t.Context())
	if err != nil || !reflect.DeepEqual(all, []access.Token{one, two}) {
		t.Errorf("%v, %v", all, err)
	}
	for _, tok := range []access.Token{aToken("cccccccc", "one"), aToken("bbbbbbbb", "three")} {
		if err := s.AddToken(t.Context(), tok); !errors.Is(err, access.ErrTaken) {
			t.Errorf("%s %s: %v", tok.ID, tok.Name, err)
		}
	}
	for _, name := range []string{"three", "", "ONE", "on%"} {
		if was, err := s.RevokeToken(t.Context(), name); err != nil || was {
			t.Errorf("revoke %q: %t, %v", name, was, err)
		}
	}
	if was, err := s.RevokeToken(t.Context(), "one"); err != nil || !was {
		t.Errorf("%t, %v", was, err)
	}
	if err := s.AddToken(t.Context(), aToken("cccccccc", "one")); err != nil {
		t.Error(err)
	}
}

func testTokenBounds(t *testing.T, db *store.DB, _ *Clock) {
	for _, change := range []func(*access.Token){
		func(t *access.Token) { t.ID = "" },
		func(t *access.Token) { t.Name = "" },
		func(t *access.Token) { t.Name = strings.Repeat("n", 1<<20) },
		func(t *access.Token) { t.Name = "a\x00" },
		func(t *access.Token) { t.Principal = "" },
		func(t *access.Token) { t.Hash = nil },
		func(t *access.Token) { t.Hash = make([]byte, 33) },
		func(t *access.Token) { t.Scopes = []string{strings.Repeat("s", 1<<20)} },
	} {
		tok := aToken("aaaaaaaa", "one")
		change(&tok)
		if err := db.AddToken(t.Context(), tok); err == nil || errors.Is(err, access.ErrTaken) {
			t.Errorf("%.80v: %v", tok, err)
		}
	}
	err := db.View(t.Context(), func(tx store.Tx) error {
		_, revoked := tx.RevokeToken("one")
		return errors.Join(tx.AddToken(aToken("aaaaaaaa", "one")), revoked)
	})
	if !errors.Is(err, store.ErrReadOnly) {
		t.Error(err)
	}
	if all, err := db.Tokens(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// Of many that want one name at once, one gets it.
func testTokensAtOnce(t *testing.T, db *store.DB, _ *Clock) {
	got := 0
	for _, err := range atOnce(50, func(i int) error { return db.AddToken(t.Context(), aToken(fmt.Sprintf("%08d", i), "one")) }) {
		switch {
		case err == nil:
			got++
		case !errors.Is(err, access.ErrTaken):
			t.Error(err)
		}
	}
	if got != 1 {
		t.Errorf("%d have the name", got)
	}
}
