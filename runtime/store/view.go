package store

import (
	"context"
	"errors"
	"time"
)

// readers are connections that read beside the writer.
type readers struct {
	now  func() time.Time
	free chan *session // holds those that nobody uses
	shut chan struct{} // closed when no more are given out
}

func (r *readers) view(ctx context.Context, fn func(Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	var s *session
	select {
	case <-r.shut:
		return ErrClosed
	default:
	}
	select {
	case s = <-r.free:
	case <-ctx.Done():
		return ctx.Err()
	case <-r.shut:
		return ErrClosed
	}
	defer func() { r.free <- s }()
	if err := s.begin(ctx, s.engine.beginRead); err != nil {
		return s.classify(err)
	}
	t := &transaction{ctx: ctx, s: s, now: r.now()}
	defer func() {
		t.end()
		if _, end := s.exec(rollback); !s.isGone() { // what broke has no transaction any more
			err = errors.Join(err, end)
		}
	}()
	if err := fn(Tx{t}); err != nil {
		return err
	}
	return t.ready()
}

// close waits for those in use.
func (r *readers) close() error {
	close(r.shut)
	var all []error
	for range cap(r.free) {
		s := <-r.free
		all = append(all, s.close())
	}
	return errors.Join(all...)
}
