package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/owner"
)

const (
	// decisionsPath is where an owner takes decisions.
	decisionsPath = "/control/v1/decisions"
	// maxDecision is the largest one that is read, and the largest answer.
	maxDecision = 4 << 20
	// decidePatience is how long a command waits for an owner that is starting or
	// ending, or that has much to do.
	decidePatience = 30 * time.Second
)

// refusedDecision is what an owner answers that did not do what was decided.
type refusedDecision struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// takeDecision answers at decisionsPath. Whoever gets here is the user that hutch
// runs as; that a person was asked is what the client says.
func (a *App) takeDecision(w http.ResponseWriter, r *http.Request) {
	var d decision
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxDecision))
	in.DisallowUnknownFields()
	if err := in.Decode(&d); err != nil {
		answerDecision(w, http.StatusBadRequest, fmt.Errorf("the decision cannot be read: %w", err))
		return
	}
	err := a.decide(context.WithoutCancel(r.Context()), d) // never half of it
	switch {
	case err == nil:
		a.log.InfoContext(r.Context(), "decided", "action", d.Action, "module", d.Module, "who", d.who(), "digest", d.Digest)
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, errUnattended):
		a.log.WarnContext(r.Context(), "decision refused", "action", d.Action, "module", d.Module, "error", err)
		answerDecision(w, http.StatusForbidden, err)
	case errors.Is(err, errMeanwhile):
		answerDecision(w, http.StatusConflict, err)
	default:
		answerDecision(w, http.StatusUnprocessableEntity, err)
	}
}

func answerDecision(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(refusedDecision{err.Error(), hintOf(err)}) // the client may be gone
}

// decide has a decision carried out by whoever owns the state folder, or while nobody
// does, by this process.
func (cfg Config) decide(ctx context.Context, d decision) error {
	st := state{cfg.State}
	return st.byOwner(ctx, decidePatience, ", and nothing was decided", func(ctx context.Context) error {
		return cfg.tellOwner(ctx, st, decisionsPath, d)
	}, func(ctx context.Context) error {
		return cfg.decideAlone(ctx, st, d)
	})
}

// tellOwner has the owner of a state folder do something.
func (cfg Config) tellOwner(ctx context.Context, st state, path string, what any) (err error) {
	c, err := owner.Dial(ctx, st.dir)
	if err != nil {
		return err
	}
	if err := cfg.agrees(c.Owner); err != nil {
		return err
	}
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	resp, err := c.Do(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return owner.ErrGone // it is leaving; what it has done already it does not do twice
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	var no refusedDecision
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxDecision)).Decode(&no); err != nil {
		return fmt.Errorf("%v does not do that: %s", c.Owner, resp.Status)
	}
	told := hinted(errors.New(oneLine(no.Error)), "%s", oneLine(no.Hint))
	if resp.StatusCode == http.StatusForbidden {
		told.kind = tool.ErrDenied
	}
	return told
}

// decideAlone owns the folder for a moment. Nobody was started there who could allow
// what no person decides.
func (cfg Config) decideAlone(ctx context.Context, st state, d decision) (err error) {
	o, err := owner.Claim(st.dir, cfg.ownerInfo(ownerTools))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Release()) }()
	if d.Unattended {
		return errNobodyAllows()
	}
	if err := d.check(); err != nil {
		return err
	}
	db, err := openStore(ctx, cfg, true, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = d.change(ctx, db).carryOut(ctx, cfg.Policy, db)
	return err
}

func errNobodyAllows() error {
	return hinted(fmt.Errorf("%w: no hutch runs here that was started with --%s", errUnattended, flagUnattended),
		"run it in a terminal, without --%s", flagYes)
}
