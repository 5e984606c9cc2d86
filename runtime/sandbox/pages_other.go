//go:build !linux

package sandbox

import "errors"

// Pages would ask the system which pages of memory a call changed.
type Pages struct{}

// OpenPages says that this system does not tell.
func OpenPages(int64) (*Pages, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Pages) Close() error { return nil }

func (*Pages) keep([]byte) ([]byte, error)          { return nil, errors.ErrUnsupported }
func (*Pages) cover([]byte) error                   { return errors.ErrUnsupported }
func (*Pages) restore(_, _ []byte, _ *[]byte) error { return errors.ErrUnsupported }
