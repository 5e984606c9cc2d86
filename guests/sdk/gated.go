package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"unsafe"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Gated is a gated operation, as a package that offers it to tools hands it to
// [Call.Ask]: fetch and kv beside this one do. This package itself knows none of
// their imports, so that a module links, and by that asks for, only what its tools
// use.
type Gated struct {
	Op abi.Op
	// Import is the function of hutch:host with that name. Natively it is not
	// called: sdktest.Host answers.
	Import func(ptr unsafe.Pointer, n int32) int64
}

// What a gated operation can come to if it does not work. An error of one is a
// [*Refusal], and errors.Is tells which of these it is.
var (
	// ErrDenied: not in the module's [Requests], not granted by the operator, or
	// refused by a person. Trying again does not help.
	ErrDenied = errors.New("denied")
	// ErrInvalid: what was asked is wrong in itself.
	ErrInvalid = errors.New("invalid")
	// ErrLimit: a size, rate or budget is used up. Less, or later, may work.
	ErrLimit = errors.New("limit")
	// ErrUnavailable: the service behind the operation cannot answer now.
	ErrUnavailable = errors.New("unavailable")
	// ErrCancelled: nobody waits for the call any more.
	ErrCancelled = errors.New("cancelled")
)

// Refusal is why a gated operation came to nothing. A tool may return it as it is:
// Text says what was found, what is allowed and what to do next.
type Refusal struct {
	Op   abi.Op
	Code abi.Code
	Text string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// Is reports whether target is the one of [ErrDenied] and so on that r is.
func (r *Refusal) Is(target error) bool {
	switch r.Code {
	case abi.Denied:
		return target == ErrDenied
	case abi.Invalid:
		return target == ErrInvalid
	case abi.Limit:
		return target == ErrLimit
	case abi.Cancelled:
		return target == ErrCancelled
	}
	return target == ErrUnavailable
}

// Ask has the host do a gated operation: in goes there as JSON, and the result comes
// back into out, a pointer. Tools use fetch and kv, which call it. If the host
// refuses, the error is a [*Refusal].
func (c *Call) Ask(op Gated, in, out any) error {
	body, err := encode(in)
	if err != nil {
		return fmt.Errorf("%s: %w", op.Op, err)
	}
	r := c.host.Gated(op, body)
	if r.Code != abi.OK {
		return refusal(op.Op, r)
	}
	if json.Unmarshal(r.Body, out) != nil {
		return &Refusal{op.Op, abi.Unavailable, string(op.Op) + ": the host gave an answer that cannot be read"}
	}
	return nil
}

func refusal(op abi.Op, r abi.Response) *Refusal {
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	text := string(op) + ": " + r.Code.String() + ", without a reason"
	if json.Unmarshal(r.Body, &body) == nil && body.Error.Message != "" {
		text = body.Error.Message
	}
	return &Refusal{op, r.Code, text}
}
