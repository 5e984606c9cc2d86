package fetch

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"

	"github.com/hutch-run/hutch/protocol/abi"
)

// explain turns an error of an exchange into what a guest may read. ctx is the
// call's, timed the one with this client's own limit. The words of the standard
// library stay in the cause: they name addresses and name servers, and may quote
// what was injected.
func (c *Client) explain(ctx, timed context.Context, host string, err error) *Refused {
	if refused := (*Refused)(nil); errors.As(err, &refused) {
		return refused
	}
	switch {
	case ctx.Err() != nil:
		return &Refused{Code: abi.Cancelled, Text: "host " + shown(host) + ": the call that asked has ended", Err: err}
	case timed.Err() != nil:
		return c.unavailable(host, fmt.Sprintf("no complete answer within %s", c.o.Timeout), err)
	}
	for _, known := range reasons() {
		if known.is(err) {
			return c.unavailable(host, known.text, err)
		}
	}
	return c.unavailable(host, fmt.Sprintf("its answer is no HTTP, or has over %d bytes of header lines", c.o.MaxHeaderBytes), err)
}

func (c *Client) unavailable(host, text string, err error) *Refused {
	return &Refused{Code: abi.Unavailable, Text: "host " + shown(host) + ": " + text, Err: err}
}

type reason struct {
	is   func(error) bool
	text string
}

// reasons are searched in order.
func reasons() []reason {
	return []reason{
		{func(err error) bool { d, ok := as[*net.DNSError](err); return ok && d.IsNotFound }, "there is no such host"},
		{isA[*net.DNSError], "its address cannot be found out now"},
		{isA[*tls.CertificateVerificationError], "its certificate is not valid for it"},
		{isA[tls.RecordHeaderError], "does not speak TLS on that port"},
		{is(syscall.ECONNREFUSED), "refuses connections on that port"},
		{func(err error) bool { n, ok := as[net.Error](err); return ok && n.Timeout() }, "does not answer in time"},
		{is(context.DeadlineExceeded), "does not answer in time"},
		{is(gzip.ErrHeader, gzip.ErrChecksum), "its answer is no valid gzip"},
		{isA[flate.CorruptInputError], "its answer is no valid gzip"},
		{isOp("dial"), "cannot be reached on that port from here"},
		{is(io.EOF, io.ErrUnexpectedEOF), "ended the connection before its answer was complete"},
		{isA[handshakeError], "the TLS handshake failed"},
		{isOp("read", "write"), "ended the connection before its answer was complete"},
	}
}

func as[T error](err error) (T, bool) {
	var target T
	ok := errors.As(err, &target)
	return target, ok
}

func isA[T error](err error) bool {
	_, ok := as[T](err)
	return ok
}

// isOp matches errors of the operating system, whose numbers are not the same everywhere.
func isOp(ops ...string) func(error) bool {
	return func(err error) bool {
		op, ok := as[*net.OpError](err)
		return ok && slices.Contains(ops, op.Op)
	}
}

func is(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
}
