package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// MaxTokens is how many tokens there may be.
const MaxTokens = 1000

// Store keeps tokens.
type Store interface {
	// AddToken keeps a token, or returns [ErrTaken] if its name or its id is another's.
	AddToken(context.Context, Token) error
	// RevokeToken forgets the token of that name, and reports whether there was one.
	RevokeToken(ctx context.Context, name string) (bool, error)
	// Tokens returns all tokens, ordered by name.
	Tokens(context.Context) ([]Token, error)
}

// Keys are the tokens there are, as they are in a [Store] that nobody else changes.
type Keys struct {
	store Store
	now   func() time.Time

	changing sync.Mutex // held while the store is changed, so that it and byID agree

	mu   sync.RWMutex
	byID map[string]key
	// open ends when there is the first token.
	open  context.Context
	close context.CancelFunc
}

// A key is a token that opens the door, until gone ends.
type key struct {
	Token
	gone context.Context
	end  context.CancelFunc
	used *atomic.Int64 // when it last did, in milliseconds; 0 is never
}

// identity is who sends what comes with it.
func (k key) identity() Identity {
	return Identity{Principal: k.Principal, Token: k.Name, scopes: k.Scopes}
}

// OpenKeys reads what is kept. A nil clock is [time.Now].
func OpenKeys(ctx context.Context, s Store, now func() time.Time) (*Keys, error) {
	if now == nil {
		now = time.Now
	}
	all, err := s.Tokens(ctx)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	k := newKeys(s, now)
	for _, t := range all {
		k.take(t)
	}
	return k, nil
}

func newKeys(s Store, now func() time.Time) *Keys {
	k := &Keys{store: s, now: now, byID: map[string]key{}}
	k.open, k.close = context.WithCancel(context.Background())
	return k
}

// take lets a token open the door, and shuts it for everybody else.
func (k *Keys) take(t Token) {
	gone, end := context.WithCancel(context.Background())
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byID[t.ID] = key{t, gone, end, new(atomic.Int64)}
	k.close()
}

// Needed reports whether there is a token. One that has expired counts.
func (k *Keys) Needed() bool { return k.unneeded().Err() != nil }

// unneeded ends when a token is needed.
func (k *Keys) unneeded() context.Context {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.open
}

// Len returns how many tokens there are.
func (k *Keys) Len() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.byID)
}

// List returns all tokens, ordered by name, without their hashes and with when they were
// used.
func (k *Keys) List() []Token {
	k.mu.RLock()
	defer k.mu.RUnlock()
	all := make([]Token, 0, len(k.byID))
	for _, e := range k.byID {
		e.Hash, e.Used = nil, time.Time{}
		if used := e.used.Load(); used != 0 {
			e.Used = time.UnixMilli(used)
		}
		all = append(all, e.Token)
	}
	slices.SortFunc(all, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Add keeps a token. From when it returns on, the token opens the door, and nothing else
// does without one.
func (k *Keys) Add(ctx context.Context, t Token) error {
	if err := t.Check(); err != nil {
		return err
	}
	k.changing.Lock()
	defer k.changing.Unlock()
	if k.Len() >= MaxTokens {
		return fmt.Errorf("%w: %d", ErrFull, MaxTokens)
	}
	if err := k.store.AddToken(ctx, t); err != nil {
		return err
	}
	k.take(t)
	return nil
}

// Revoke forgets the token of that name, and ends the requests that came with it. One that
// the store has forgotten already, as when it failed behind that, is forgotten here too. The
// last one is revoked with open alone, which lets everybody in again that a door without
// tokens does: else [ErrLast] is returned, and it stays.
func (k *Keys) Revoke(ctx context.Context, name string, open bool) error {
	k.changing.Lock()
	defer k.changing.Unlock()
	if all := k.List(); !open && len(all) == 1 && all[0].Name == name {
		return ErrLast
	}
	was, err := k.store.RevokeToken(ctx, name)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, e := range k.byID {
		if e.Name == name {
			e.end()
			delete(k.byID, id)
			was = true
		}
	}
	if !was {
		return ErrUnknown
	}
	if len(k.byID) == 0 {
		k.open, k.close = context.WithCancel(context.Background())
	}
	return nil
}

// Why the text of a token does not open the door. What is told of the first two is the
// same.
var (
	errMalformed = errors.New("malformed")
	errUnknown   = errors.New("unknown")
	errExpired   = errors.New("expired")
)

// find returns the key that has this text. How long that takes depends neither on what is
// kept of it nor on whether there is one: the id alone is looked up, and of hashes no more
// is learned than whether they are equal.
func (k *Keys) find(text string) (key, error) {
	id, ok := idOf(text)
	if !ok {
		return key{}, errMalformed
	}
	hash := hashOf(text)
	k.mu.RLock()
	e, known := k.byID[id]
	k.mu.RUnlock()
	if !known {
		e.Hash = make([]byte, sha256.Size)
	}
	if subtle.ConstantTimeCompare(e.Hash, hash) != 1 || !known {
		return key{}, errUnknown
	}
	now := k.now()
	if !e.Expires.IsZero() && !now.Before(e.Expires) {
		return key{}, errExpired
	}
	e.used.Store(now.UnixMilli())
	return e, nil
}
