package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/hutch-run/hutch/host/kv"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/owner"
	"github.com/hutch-run/hutch/runtime/store"
)

const (
	// valuesPath is where an owner keeps values for a command beside it.
	valuesPath = "/control/v1/values"
	// maxLoan is the largest message there: a value in base64, twice.
	maxLoan = 4 << 20
)

// loan is one operation for another process of the same user, which has
// decided that it is granted.
type loan[A any] struct {
	Access A      `json:"access"`
	Op     abi.Op `json:"op"`
	Body   []byte `json:"body"`
}

// lent is its answer.
type lent struct {
	Code abi.Code `json:"code"`
	Body []byte   `json:"body"`
}

// lendValues answers at valuesPath.
func (a *App) lendValues(w http.ResponseWriter, r *http.Request) {
	lend(w, r, maxLoan, kv.New(a.db, a.log).Serve)
}

// lend does one operation for another process.
func lend[A any](w http.ResponseWriter, r *http.Request, most int64, serve func(context.Context, A, abi.Request) abi.Response) {
	var l loan[A]
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(&l); err != nil {
		plain(w, http.StatusBadRequest, "no operation that can be done for another process")
		return
	}
	answer := serve(r.Context(), l.Access, abi.Request{Op: l.Op, Body: l.Body})
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(lent{answer.Code, answer.Body}) // the client may be gone
}

// A borrower does for tools what needs the store, where another process may own the state
// folder: it asks the owner, and while there is none owns the folder itself, until it is
// closed.
type borrower struct {
	cfg Config
	log *slog.Logger

	mu      sync.Mutex // guards what is below, which is there while this process owns the folder
	own     *owner.Owner
	db      *store.DB
	values  *kv.Service
	tracker *embedded // nil as long as nobody has asked it
}

// Serve implements [gate.Values].
func (b *borrower) Serve(ctx context.Context, a kv.Access, r abi.Request) abi.Response {
	return b.serve(ctx, r, errand{"values cannot be kept now", "who keeps the values does not answer", func(ctx context.Context) (abi.Response, error) {
		return b.borrow(ctx, valuesPath, loan[kv.Access]{a, r.Op, r.Body}, maxLoan)
	}, func(ctx context.Context) (abi.Response, error) { return b.values.Serve(ctx, a, r), nil }})
}

// An errand is how an operation is done, and what is said if it is not.
type errand struct {
	failed, silent string
	asked, alone   func(context.Context) (abi.Response, error)
}

// serve has an operation done by whoever owns the folder, which may be this process.
func (b *borrower) serve(ctx context.Context, r abi.Request, e errand) abi.Response {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting, cancel := context.WithTimeout(ctx, pinsPatience)
	defer cancel()
	for b.own == nil {
		answer, err := e.asked(waiting)
		if errors.Is(err, owner.ErrGone) {
			err = b.open(ctx)
		}
		switch {
		case err == nil && b.own == nil:
			return answer
		case err != nil && waiting.Err() == nil && !errors.Is(err, owner.ErrOwned):
			b.log.ErrorContext(ctx, "what a tool keeps cannot be reached", "error", err)
			return abi.Refuse(abi.Unavailable, string(r.Op)+": "+e.failed)
		}
		select {
		case <-waiting.Done():
			return abi.Refuse(abi.Unavailable, string(r.Op)+": "+e.silent+": try again")
		case <-time.After(20 * time.Millisecond):
		}
	}
	answer, err := e.alone(ctx)
	if err != nil {
		b.log.ErrorContext(ctx, "what a tool keeps cannot be reached", "error", err)
		return abi.Refuse(abi.Unavailable, string(r.Op)+": "+e.failed)
	}
	return answer
}

// borrow has the owner of the folder do the operation. Only while nothing was sent
// is the error [owner.ErrGone]: what was sent may have been done.
func (b *borrower) borrow(ctx context.Context, path string, what any, most int64) (abi.Response, error) {
	c, err := owner.Dial(ctx, b.cfg.State)
	if err != nil {
		return abi.Response{}, err
	}
	body, err := json.Marshal(what)
	if err != nil {
		return abi.Response{}, err
	}
	resp, err := c.Do(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return abi.Response{}, fmt.Errorf("%v: %w", c.Owner, err)
	}
	var l lent
	err = json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(&l)
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%v does nothing for tools of others: %s", c.Owner, resp.Status)
	}
	return abi.Response{Code: l.Code, Body: l.Body}, errors.Join(err, resp.Body.Close())
}

// open makes this process the owner.
func (b *borrower) open(ctx context.Context) error {
	o, err := owner.Claim(b.cfg.State, b.cfg.ownerInfo("tools"))
	if err != nil {
		return err
	}
	db, err := openStore(ctx, b.cfg, true, b.log)
	if err != nil {
		return errors.Join(err, o.Release())
	}
	b.own, b.db, b.values = o, db, kv.New(db, b.log)
	return nil
}

// Close gives the folder up.
func (b *borrower) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.own == nil {
		return nil
	}
	err := errors.Join(b.db.Close(), b.own.Release())
	b.own, b.db, b.values, b.tracker = nil, nil, nil, nil
	return err
}
