package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/hutch-run/hutch/runtime/owner"
	"github.com/hutch-run/hutch/runtime/store"
)

const (
	// maxTold is the largest answer that is read from an owner.
	maxTold = 16 << 20
	// pinsPatience is how long a command waits for an owner that is starting or ending.
	pinsPatience = 2 * time.Second
)

// lookAt returns what is in a state folder that this process does not own: its owner
// tells it at path, or it is read from the store while there is no owner. A folder
// without a store has nothing.
func lookAt[T any](ctx context.Context, cfg Config, path string, read func(*store.DB) (T, error)) (found T, err error) {
	st := state{cfg.State}
	if there, err := cfg.hasStore(st); err != nil || !there {
		return found, err
	}
	err = st.byOwner(ctx, pinsPatience, "", func(ctx context.Context) error {
		return askOwner(ctx, st, path, &found)
	}, func(ctx context.Context) (err error) {
		found, err = readAlone(ctx, cfg, read)
		return err
	})
	return found, err
}

// hasStore reports whether there may be something in the store: one on a server may have
// been filled from another state folder.
func (cfg Config) hasStore(st state) (bool, error) {
	if cfg.Store.URL != "" {
		_, err := openState(st.dir)
		return err == nil, err
	}
	_, err := os.Stat(st.database())
	_, other := os.Stat(st.elsewhere())
	return !errors.Is(err, fs.ErrNotExist) || !errors.Is(other, fs.ErrNotExist), nil
}

func askOwner(ctx context.Context, st state, path string, into any) (err error) {
	c, err := owner.Dial(ctx, st.dir)
	if err != nil {
		return err
	}
	resp, err := c.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return owner.ErrGone // it is leaving
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode == http.StatusNotFound && c.Owner.Kind == ownerTracker {
		return hinted(fmt.Errorf("state %s: %v uses it, and runs no tools", quoted(st.dir), c.Owner), "use another state folder with --%s DIR", flagState)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%v does not tell what is in the state folder: %s", c.Owner, resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxTold)).Decode(into)
}

// readAlone owns the folder for a moment.
func readAlone[T any](ctx context.Context, cfg Config, read func(*store.DB) (T, error)) (found T, err error) {
	st := state{cfg.State}
	o, err := owner.Claim(st.dir, cfg.ownerInfo(ownerTools))
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, o.Release()) }()
	db, err := openStore(ctx, cfg, true, nil)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return read(db)
}

// tell answers who looks at the state folder.
func tell(w http.ResponseWriter, found any, err error) {
	if err != nil {
		plain(w, http.StatusServiceUnavailable, "the store does not answer")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(found) // the client may be gone
}
