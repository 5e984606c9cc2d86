package relay

import (
	"context"
	"errors"
	"io"
)

// Pipe returns a [Server] in this process, and the two ends that it reads from
// and writes to.
func Pipe() (Server, io.ReadCloser, io.WriteCloser) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	return &pipe{PipeReader: fromServer, w: toServer}, in, out
}

type pipe struct {
	*io.PipeReader
	w *io.PipeWriter
}

// Write implements [io.Writer].
func (p *pipe) Write(b []byte) (int, error) { return p.w.Write(b) }

// CloseWrite implements [Server].
func (p *pipe) CloseWrite() error { return p.w.Close() }

// Check implements [Server]: what is in this process ends with it.
func (p *pipe) Check(context.Context) error { return nil }

// Close implements [io.Closer].
func (p *pipe) Close() error { return errors.Join(p.PipeReader.Close(), p.w.Close()) }
