// Package access says who may come in at a listener: which hosts and origins a request
// may name, which tokens open the door, and for whom.
//
// It is the one place for this: what is served behind a [Door] looks at none of it, and
// asks [From] who is there. A token's text is shown once, when it is made. What is kept
// is its hash, and what is compared are hashes, in constant time. Whatever a request
// brought to come in with is taken off it before anything behind the door sees it.
//
// [Keys] and [Door] may be used from any goroutine, and start none.
package access

import (
	"context"
	"slices"
)

// Local is the principal of whoever uses hutch without a token: from this machine, while
// there are no tokens, or over a pipe of their own.
const Local = "local"

// Scopes a token can have besides being let in. Each gives what it says, and none includes
// another.
const (
	// ThreadsRead lets a token read the threads of all principals.
	ThreadsRead = "threads:read"
	// Admin lets it see how hutch does, its metrics, and set up the tracker.
	Admin = "admin"
)

// Scopes returns all scopes there are, sorted: those above, and those of the tracker.
func Scopes() []string {
	return []string{
		Admin, "files:read", "files:write", "members:read", "members:self", "messages:read", "messages:write", "projects:read",
		"steps:read", "steps:write", "tasks:assign", "tasks:force", "tasks:read", "tasks:take", "tasks:write", ThreadsRead,
	}
}

// An Identity is who sent a request.
type Identity struct {
	// Principal is who is accountable for it.
	Principal string
	// Token is the name of the token that it came with, empty without one.
	Token string

	scopes []string
}

// Scopes returns the scopes that it has; the caller owns the slice.
func (i Identity) Scopes() []string { return slices.Clone(i.scopes) }

// Has reports whether it has a scope.
func (i Identity) Has(scope string) bool { return slices.Contains(i.scopes, scope) }

// Anyone is who asks where no token is needed: the person at this machine, who may do
// everything.
func Anyone() Identity { return Identity{Principal: Local, scopes: Scopes()} }

type identityKey struct{}

// With returns a context that says who sent the request it belongs to.
func With(ctx context.Context, i Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, i)
}

// From returns who sent the request that ctx belongs to. Without an answer nobody was let
// in, and the request is to be refused.
func From(ctx context.Context) (i Identity, ok bool) {
	i, ok = ctx.Value(identityKey{}).(Identity)
	return i, ok && i.Principal != ""
}
