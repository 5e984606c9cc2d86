package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A frame is a header of 13 bytes, big-endian, and a body:
//
//	length of the body  uint32
//	kind                uint8
//	id of the call      uint64
//
// The parent numbers calls from 1 and never reuses a number within a process.
type header struct {
	size uint32
	kind kind
	id   uint64
}

const headerBytes = 13

// kind says what a frame is for, and so who may send it.
type kind uint8

const (
	// Sent by the parent. A load, describe or call is answered by one done or
	// failed with the same id.
	kindLoad     kind = 1 + iota // loadHead, then the module's bytes
	kindDescribe                 // nothing
	kindCall                     // callHead, then the arguments
	kindCancel                   // nothing: the answer is no longer wanted
	kindAnswer                   // int32 abi.Code, then JSON: answers the call's ask
	kindPing                     // nothing: is anybody there? The id counts pings, not calls

	// Sent by the worker.
	kindHello    // protocol version; the first frame, id 0
	kindDone     // usage, then the answer
	kindFailed   // failedBody
	kindAsk      // a gated operation; a call has at most one unanswered
	kindLog      // level, then a line
	kindProgress // JSON
	kindPong     // nothing: answers a ping and those before it, with its id
)

var kindNames = [...]string{
	kindLoad: "load", kindDescribe: "describe", kindCall: "call", kindCancel: "cancel", kindAnswer: "answer", kindPing: "ping",
	kindHello: "hello", kindDone: "done", kindFailed: "failed", kindAsk: "ask", kindLog: "log", kindProgress: "progress", kindPong: "pong",
}

func (k kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// readHeader reads the next frame's header. It returns io.EOF if the stream ends
// between two frames.
func readHeader(r io.Reader) (header, error) {
	var b [headerBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	return header{
		size: binary.BigEndian.Uint32(b[:4]),
		kind: kind(b[4]),
		id:   binary.BigEndian.Uint64(b[5:]),
	}, nil
}

// firstChunk is what is allocated on the word of a header alone.
const firstChunk = 64 << 10

// readBody reads the body that h announces, if it is at most limit bytes long.
// Memory grows with what arrived, never with what was claimed.
func readBody(r io.Reader, h header, limit int) ([]byte, error) {
	if limit < 0 {
		return nil, fmt.Errorf("%v frame, which is not expected here", h.kind)
	}
	if int64(h.size) > int64(limit) {
		return nil, fmt.Errorf("%v frame of %d bytes, at most %d", h.kind, h.size, limit)
	}
	size := int(h.size)
	body := make([]byte, min(size, firstChunk))
	for have := 0; ; {
		if _, err := io.ReadFull(r, body[have:]); err != nil {
			return nil, fmt.Errorf("%v frame of %d bytes: %w", h.kind, h.size, noEOF(err))
		}
		have = len(body)
		if have == size {
			return body, nil
		}
		grown := make([]byte, min(size, 4*have))
		copy(grown, body)
		body = grown
	}
}

// noEOF makes an end inside a frame what it is.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// frame is one message on its way out. The body is head followed by tail, so
// that a large tail need not be copied behind a small head.
type frame struct {
	kind kind
	id   uint64
	head []byte
	tail []byte
}

func (f frame) size() int { return len(f.head) + len(f.tail) }

// frameWriter writes whole frames, one at a time.
type frameWriter struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

func newFrameWriter(w io.Writer) *frameWriter { return &frameWriter{w: w} }

// write sends f. Small frames leave in one system call.
func (w *frameWriter) write(f frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = binary.BigEndian.AppendUint32(w.buf[:0], uint32(f.size()))
	w.buf = append(w.buf, byte(f.kind))
	w.buf = binary.BigEndian.AppendUint64(w.buf, f.id)
	w.buf = append(w.buf, f.head...)
	if len(f.tail) <= firstChunk {
		w.buf = append(w.buf, f.tail...)
		f.tail = nil
	}
	_, err := w.w.Write(w.buf)
	if cap(w.buf) > 4*firstChunk {
		w.buf = nil
	}
	if err == nil && len(f.tail) > 0 {
		_, err = w.w.Write(f.tail)
	}
	if err != nil {
		return fmt.Errorf("write %v frame: %w", f.kind, err)
	}
	return nil
}
