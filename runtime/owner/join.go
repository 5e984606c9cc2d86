package owner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// How a process that wants in looks again.
const (
	lookFirst = 10 * time.Millisecond
	lookMost  = 200 * time.Millisecond
)

// Join makes this process the owner of dir, or a client of whoever is: exactly
// one of both is returned. It waits, until ctx ends, for one that is just starting
// or ending.
func Join(ctx context.Context, dir string, info Info) (*Owner, *Client, error) {
	var joined *Client
	o, err := again(ctx, func() (*Owner, error) {
		o, err := claimUnlessReserved(dir, info)
		if !errors.Is(err, ErrOwned) {
			return o, err
		}
		if joined, err = Dial(ctx, dir); errors.Is(err, ErrGone) {
			return nil, fmt.Errorf("%w: another process owns it and does not answer: %w", ErrOwned, err)
		}
		return nil, err
	})
	return o, joined, err
}

// TakeOver makes this process the owner of dir before any that joins. An owner
// that is there is asked to leave, by ask, whose error is final unless it is
// [ErrGone].
func TakeOver(ctx context.Context, dir string, info Info, ask func(context.Context, *Client) error) (_ *Owner, err error) {
	heir := lockOf(dir, heirFile)
	if taken, err := heir.TryLockContext(ctx, lookFirst); err != nil || !taken { // those who join hold it for a moment
		return nil, errors.Join(fmt.Errorf("%w: another process is about to take it over", ErrOwned), err, heir.Close())
	}
	defer func() { err = errors.Join(err, heir.Close()) }()
	return again(ctx, func() (*Owner, error) {
		o, err := Claim(dir, info)
		if !errors.Is(err, ErrOwned) {
			return o, err
		}
		c, gone := Dial(ctx, dir)
		if gone == nil {
			gone = ask(ctx, c)
		}
		if gone != nil && !errors.Is(gone, ErrGone) {
			return nil, gone
		}
		return nil, err
	})
}

// again calls try until its error is not [ErrOwned], or ctx ends.
func again(ctx context.Context, try func() (*Owner, error)) (*Owner, error) {
	for pause := lookFirst; ; pause = min(2*pause, lookMost) {
		o, err := try()
		if !errors.Is(err, ErrOwned) {
			return o, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// claimUnlessReserved leaves a directory without an owner to a process that is
// taking it over.
func claimUnlessReserved(dir string, info Info) (*Owner, error) {
	heir := lockOf(dir, heirFile)
	free, err := heir.TryRLock()
	if err == nil && !free {
		err = ErrOwned
	}
	if err != nil {
		return nil, errors.Join(err, heir.Close())
	}
	o, err := Claim(dir, info)
	return o, errors.Join(err, heir.Close())
}

func lockOf(dir, file string) *flock.Flock {
	return flock.New(filepath.Join(dir, file), flock.SetPermissions(0o600))
}
