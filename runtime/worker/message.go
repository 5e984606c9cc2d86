package worker

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hutch-run/hutch/protocol/abi"
)

// The most bytes a frame's body may have. The sender keeps to them with an error
// that says so; the receiver holds the sender to them.
const (
	maxModule      = 64 << 20  // load: the module, its head included
	maxCall        = 64 << 20  // call: head and arguments, whatever Limits.InputBytes says
	maxDescription = 256 << 10 // done of a describe
	maxGated       = 16 << 20  // ask and answer: the JSON of a gated operation
	maxHello       = 64
	maxFailed      = 64 << 10
	maxProgress    = 4 << 10
	maxOpName      = 64
	usageBytes     = 17 // and the text that its last byte counts
	maxAnew        = 200
	levelBytes     = 1
	codeBytes      = 4
)

// What the worker forwards for one call, and no more: a call that exceeds these
// tells the parent that the worker is not ours any longer.
const (
	// spareLogLines leaves room for a closing line such as "900 more dropped",
	// spareLogBytes for the mark of a line that was cut.
	spareLogLines  = 1
	spareLogBytes  = 64
	maxProgressRun = 2000
)

// protocolVersion is what a hello carries. Parent and worker are the same
// release, usually the same file; the number catches a stale worker binary.
const protocolVersion = "hutch-worker 4"

// loadHead stands before the module in a load frame.
type loadHead struct {
	// CacheDir is this module's own folder for compiled code; empty keeps none.
	// A new one is to be filled, one that is read-only was.
	CacheDir      string     `json:"cacheDir,omitempty"`
	CacheReadOnly bool       `json:"cacheReadOnly,omitempty"`
	Limits        abi.Limits `json:"limits"`
	// Calls is the most calls that run at once.
	Calls int `json:"calls"`
	// MemoryBytes is the most data memory the process may use.
	MemoryBytes int64 `json:"memoryBytes"`
	// RequireJail refuses to look at the module unless this process is confined.
	RequireJail bool `json:"requireJail,omitempty"`
	// Probe asks for the report alone: there is no module.
	Probe bool `json:"probe,omitempty"`
}

// callHead stands before the arguments in a call frame.
type callHead struct {
	Tool   string            `json:"tool"`
	Config map[string]string `json:"config,omitempty"`
	Limits abi.Limits        `json:"limits"`
	// Host, Log and Progress say whether anyone listens.
	Host bool `json:"host,omitempty"`
	// AskConfig is as in [abi.Invocation].
	AskConfig bool `json:"askConfig,omitempty"`
	Log       bool `json:"log,omitempty"`
	Progress  bool `json:"progress,omitempty"`
}

// failedBody is the body of a failed frame.
type failedBody struct {
	abi.Failure
	Usage abi.Usage `json:"usage"`
}

// encodeHead returns v as JSON behind its own length, ready to stand before a
// tail of raw bytes.
func encodeHead(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode head: %w", err)
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text))), text...), nil
}

// decodeHead undoes encodeHead and returns the tail.
func decodeHead(body []byte, v any) (tail []byte, err error) {
	text, tail, err := cutHead(body)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("decode head: %w", err)
	}
	return tail, nil
}

// cutHead returns the head's JSON and what stands behind it.
func cutHead(body []byte) (text, tail []byte, err error) {
	if len(body) < 4 {
		return nil, nil, fmt.Errorf("head of %d bytes, at least 4", len(body))
	}
	size := binary.BigEndian.Uint32(body)
	if uint64(size) > uint64(len(body)-4) {
		return nil, nil, fmt.Errorf("head claims %d bytes, %d are left", size, len(body)-4)
	}
	return body[4 : 4+size], body[4+size:], nil
}

// callHeads decodes the heads of calls. The last one is kept, since calls in a row
// mostly differ in their arguments alone, and JSON would be a tenth of what a small
// call takes; one with configuration is nobody else's.
type callHeads struct {
	text []byte
	head callHead
}

// mostKept is the longest head that is kept.
const mostKept = 1 << 10

func (h *callHeads) decode(body []byte) (head callHead, tail []byte, err error) {
	text, tail, err := cutHead(body)
	if err == nil && len(text) > 0 && bytes.Equal(text, h.text) {
		return h.head, tail, nil
	}
	if tail, err = decodeHead(body, &head); err != nil {
		return callHead{}, nil, err
	}
	if len(head.Config) == 0 && len(text) <= mostKept {
		h.text, h.head = bytes.Clone(text), head
	}
	return head, tail, nil
}

func encodeUsage(u abi.Usage) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, usageBytes), clamp32(u.LogLines))
	b = binary.BigEndian.AppendUint32(b, clamp32(u.HostCalls))
	b = binary.BigEndian.AppendUint64(b, uint64(max(0, u.Fuel)))
	why := abi.OneLine(u.Anew, maxAnew)
	return append(append(b, byte(len(why))), why...)
}

func clamp32(n int) uint32 { return uint32(max(0, min(n, 1<<31-1))) }

func decodeDone(body []byte) (answer []byte, usage abi.Usage, err error) {
	if len(body) < usageBytes {
		return nil, usage, fmt.Errorf("done of %d bytes, at least %d", len(body), usageBytes)
	}
	usage.LogLines = int(binary.BigEndian.Uint32(body) & (1<<31 - 1))
	usage.HostCalls = int(binary.BigEndian.Uint32(body[4:]) & (1<<31 - 1))
	usage.Fuel = int64(binary.BigEndian.Uint64(body[8:]) & (1<<63 - 1))
	why, rest := int(body[usageBytes-1]), body[usageBytes:]
	if why > maxAnew || why > len(rest) {
		return nil, usage, fmt.Errorf("done with a reason of %d bytes, at most %d, and %d are left", why, maxAnew, len(rest))
	}
	usage.Anew = abi.OneLine(string(rest[:why]), maxAnew)
	return rest[why:], usage, nil
}

// encodeAsk returns the head of an ask frame; the request's body is the tail.
func encodeAsk(op abi.Op) []byte { return append([]byte{byte(len(op))}, op...) }

// askable reports whether a guest can ask the parent for op.
func askable(op abi.Op) bool { return op.Capability() != "" || op == abi.OpConfig }

// decodeAsk accepts only operations that exist, with a body that is JSON.
func decodeAsk(body []byte) (abi.Op, []byte, error) {
	if len(body) == 0 || len(body)-1 < int(body[0]) {
		return "", nil, errors.New("ask is cut short")
	}
	op, rest := abi.Op(body[1:1+body[0]]), body[1+body[0]:]
	if !askable(op) {
		return "", nil, fmt.Errorf("unknown operation %q", abi.Cut(string(op), maxOpName))
	}
	if !json.Valid(rest) {
		return "", nil, fmt.Errorf("%s with a body that is not JSON", op)
	}
	return op, rest, nil
}

func encodeCode(c abi.Code) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(c))
}

func decodeAnswer(body []byte) (abi.Response, error) {
	if len(body) < codeBytes {
		return abi.Response{}, fmt.Errorf("answer of %d bytes, at least %d", len(body), codeBytes)
	}
	return abi.Response{Code: abi.Code(binary.BigEndian.Uint32(body)), Body: body[codeBytes:]}, nil
}

// decodeFailed reads why a worker gave no answer. The text comes from the other
// side of the wall, so it is made one clean line, and the class must be one that
// a worker can know about.
func decodeFailed(body []byte) (*abi.Failure, abi.Usage, error) {
	var b failedBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, abi.Usage{}, fmt.Errorf("decode failed frame: %w", err)
	}
	b.Usage.Anew = abi.OneLine(b.Usage.Anew, maxAnew)
	switch b.Class {
	case abi.ClassModule, abi.ClassGuest, abi.ClassTrap, abi.ClassLimit, abi.ClassTimeout, abi.ClassCancelled:
		if b.Limit != "" && !b.Limit.Known() {
			return nil, abi.Usage{}, fmt.Errorf("unknown limit %q", abi.Cut(string(b.Limit), maxOpName))
		}
		return &abi.Failure{Class: b.Class, Text: abi.OneLine(b.Text, maxFailureText), Limit: b.Limit}, b.Usage, nil
	case abi.ClassInternal:
		return abi.Failf(abi.ClassInternal, "the worker failed; hutch's log has details"), b.Usage, nil
	default:
		return nil, abi.Usage{}, fmt.Errorf("class %q is not a worker's to give", abi.Cut(string(b.Class), maxOpName))
	}
}

// maxFailureText is the longest text of a failure; in JSON a byte of it may take
// six, which still fits a failed frame.
const maxFailureText = 8 << 10

func encodeFailed(f *abi.Failure, usage abi.Usage) ([]byte, error) {
	return json.Marshal(failedBody{
		Failure: abi.Failure{Class: f.Class, Text: abi.OneLine(f.Text, maxFailureText), Limit: f.Limit},
		Usage:   usage,
	})
}
