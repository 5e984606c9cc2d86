package access

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// The text of a token is "hutch_", an id that may be known, "_", and a secret of 130 random
// bits. That is more than anyone can try, so a plain hash keeps it.
const (
	prefix       = "hutch_"
	idLength     = 8
	secretLength = 26
	textLength   = len(prefix) + idLength + 1 + secretLength
)

// MaxName is the longest name of a token or a principal, in bytes.
const MaxName = 64

var (
	// ErrTaken says that there is a token of that name.
	ErrTaken = errors.New("there is a token of that name")
	// ErrUnknown says that there is no token of that name.
	ErrUnknown = errors.New("there is no token of that name")
	// ErrLast says that without the token none would be needed any more.
	ErrLast = errors.New("it is the last token, and without one whoever is on this machine is let in")
	// ErrFull says that there are as many tokens as there may be.
	ErrFull = errors.New("there are as many tokens as there may be")
)

// A Token is what is kept of one.
type Token struct {
	// ID is the part of its text that may be known, so that one which turns up somewhere
	// can be told.
	ID string `json:"id"`
	// Name is what its owner calls it.
	Name string `json:"name"`
	// Principal is who is accountable for what comes with it.
	Principal string `json:"principal"`
	// Scopes are sorted.
	Scopes []string `json:"scopes"`
	// Hash is the SHA-256 of its text.
	Hash []byte `json:"hash"`
	// Created is when it was made, Expires from when on it is good for nothing; zero is
	// never. Both to the millisecond.
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	// Used is when it last opened the door, since the [Keys] that tell it were opened: it is
	// not kept.
	Used time.Time `json:"used,omitzero"`
}

// New makes a token and its text, which is kept nowhere. Scopes may come in any order, and
// more than once.
func New(name, principal string, scopes []string, created, expires time.Time) (_ Token, text string, err error) {
	scopes = slices.Clone(scopes)
	slices.Sort(scopes)
	t := Token{
		ID: strings.ToLower(rand.Text()[:idLength]), Name: name, Principal: principal, Scopes: slices.Compact(scopes),
		Created: created.Truncate(time.Millisecond), Expires: expires.Truncate(time.Millisecond),
	}
	text = prefix + t.ID + "_" + rand.Text()[:secretLength]
	t.Hash = hashOf(text)
	return t, text, t.Check()
}

func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// Check refuses a token that New would not make.
func (t Token) Check() error {
	switch {
	case !isID(t.ID):
		return errors.New("an id that is none")
	case len(t.Hash) != sha256.Size:
		return errors.New("a hash that is none")
	case t.Created.IsZero():
		return errors.New("a token that was made at no time")
	case !t.Expires.IsZero() && !t.Expires.After(t.Created):
		return errors.New("it expires before it was made")
	case !slices.IsSorted(t.Scopes):
		return errors.New("scopes that are not sorted")
	}
	for _, f := range []struct{ what, text string }{{"name", t.Name}, {"principal", t.Principal}} {
		if err := CheckName(f.text); err != nil {
			return fmt.Errorf("%s %w", f.what, err)
		}
	}
	return CheckScopes(t.Scopes)
}

// CheckName refuses what cannot be the name of a token or a principal.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > MaxName:
		return fmt.Errorf("of %d characters: allowed are 1 to %d", len(name), MaxName)
	case strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(nameCharacters, r) }):
		return fmt.Errorf("%q: allowed are letters, digits and . _ @ + -", name)
	case name[0] == '-' || strings.Trim(name, ".") == "":
		return fmt.Errorf("%q: it begins with a -, or is nothing but dots", name)
	}
	return nil
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@+-"

// CheckScopes refuses scopes that there are none of.
func CheckScopes(scopes []string) error {
	all := Scopes()
	for _, s := range scopes {
		if !slices.Contains(all, s) {
			return fmt.Errorf("scope %q: there are %s", abi.Cut(s, MaxName), strings.Join(all, ", "))
		}
	}
	return nil
}

// idOf returns the id in the text of a token. What has another form is none.
func idOf(text string) (id string, ok bool) {
	if len(text) != textLength || !strings.HasPrefix(text, prefix) {
		return "", false
	}
	id, secret, _ := strings.Cut(text[len(prefix):], "_")
	return id, isID(id) && isBase32(secret)
}

func isID(id string) bool {
	return len(id) == idLength && id == strings.ToLower(id) && isBase32(strings.ToUpper(id))
}

func isBase32(text string) bool {
	return strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
