package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/runtime/owner"
)

const (
	// tokensPath is where an owner tells which tokens there are, and takes another.
	tokensPath = "/control/v1/tokens"
	// revokedPath is where it takes one away.
	revokedPath = tokensPath + "/revoked"
	// maxToken is the largest message about one, in bytes.
	maxToken = 64 << 10
)

// A revocation names the token that goes.
type revocation struct {
	Name string `json:"name"`
	// Open: it may be the last one.
	Open bool `json:"open,omitempty"`
}

// tellTokens answers at tokensPath, without hashes.
func (a *App) tellTokens(w http.ResponseWriter, _ *http.Request) { tell(w, a.keys.List(), nil) }

// takeToken keeps a token that a command has made. Its text never gets here.
func (a *App) takeToken(w http.ResponseWriter, r *http.Request) {
	var t access.Token
	if !readToken(w, r, &t) {
		return
	}
	err := a.keys.Add(context.WithoutCancel(r.Context()), t)
	if err == nil {
		a.log.InfoContext(r.Context(), "token created", "name", t.Name, "principal", t.Principal, "scopes", t.Scopes, "expires", expiry(t.Expires))
	}
	answerToken(w, tokenError(t.Name, err))
}

// expiry is when a token ends, for the log.
func expiry(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Format(time.RFC3339)
}

// takeRevocation takes a token away.
func (a *App) takeRevocation(w http.ResponseWriter, r *http.Request) {
	var gone revocation
	if !readToken(w, r, &gone) {
		return
	}
	err := a.keys.Revoke(context.WithoutCancel(r.Context()), gone.Name, gone.Open)
	if err == nil {
		a.log.InfoContext(r.Context(), "token revoked", "name", gone.Name)
		if !a.keys.Needed() {
			a.log.WarnContext(r.Context(), "the last token is gone: no token is needed any more where this machine alone reaches hutch")
		}
	}
	answerToken(w, tokenError(gone.Name, err))
}

func readToken(w http.ResponseWriter, r *http.Request, into any) bool {
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxToken))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		answerDecision(w, http.StatusBadRequest, fmt.Errorf("the token cannot be read: %w", err))
		return false
	}
	return true
}

// tokenErrors are those that whoever asked tells apart.
var tokenErrors = []struct {
	err  error
	code int
}{
	{access.ErrTaken, http.StatusConflict},
	{access.ErrUnknown, http.StatusNotFound},
	{access.ErrLast, http.StatusConflict},
}

func answerToken(w http.ResponseWriter, err error) {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	for _, row := range tokenErrors {
		if errors.Is(err, row.err) {
			answerDecision(w, row.code, err)
			return
		}
	}
	answerDecision(w, http.StatusUnprocessableEntity, err)
}

// changeTokens has a change carried out by whoever owns the state folder, which is told it
// at path, or while nobody does, by this process.
func (cfg Config) changeTokens(ctx context.Context, path string, what any, alone func(*access.Keys) error) error {
	st, err := openState(cfg.State)
	if err != nil {
		return err
	}
	return st.byOwner(ctx, decidePatience, ", and nothing was changed", func(ctx context.Context) error {
		return cfg.tellOwner(ctx, st, path, what)
	}, func(ctx context.Context) error {
		return cfg.changeTokensAlone(ctx, st, alone)
	})
}

// changeTokensAlone owns the folder for a moment.
func (cfg Config) changeTokensAlone(ctx context.Context, st state, change func(*access.Keys) error) (err error) {
	o, err := owner.Claim(st.dir, cfg.ownerInfo(ownerTools))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Release()) }()
	db, err := openStore(ctx, cfg, true, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	keys, err := access.OpenKeys(ctx, db, nil)
	if err != nil {
		return err
	}
	return change(keys)
}
