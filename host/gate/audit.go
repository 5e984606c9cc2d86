package gate

import (
	"context"
	"net/netip"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// Audit is told of every operation, after it, from the goroutine that did it and with
// the context that it had, which may have ended. It must be quick.
type Audit interface {
	Gated(context.Context, Record)
}

// Record says what became of one operation. It holds no value: neither what a
// guest wrote or read nor a secret.
type Record struct {
	Caller tool.Caller
	// Module and Digest say whose it was, Tool is the published name.
	Module, Digest, Tool string
	Op                   abi.Op
	// Host and Addr are of the last hop of an HTTP request: the canonical name
	// that was asked for, and the address that was used or refused.
	Host string
	Addr netip.Addr
	// Sent and Received count bytes: on the wire for HTTP, of the bodies else.
	Sent, Received int64
	// Secrets are the names of those that were put in, Redactions how many values
	// were taken out of what came back.
	Secrets    []string
	Redactions int
	Code       abi.Code
	Took       time.Duration
}

type nobody struct{}

func (nobody) Gated(context.Context, Record) {}
