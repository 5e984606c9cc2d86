//go:build cgo

package worker

import (
	"errors"
	"io"
	"testing"
)

// A program that its own jail would kill says so before it starts a worker.
func TestCgo(t *testing.T) {
	if _, err := NewPool(Options{}); !errors.Is(err, ErrCgo) {
		t.Errorf("NewPool: %v, want ErrCgo", err)
	}
	image := func() (io.ReadCloser, error) { return nil, errors.New("not needed") }
	p, err := NewPool(Options{Image: image})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
