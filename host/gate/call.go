package gate

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/kv"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// call serves the operations of one call of a tool.
type call struct {
	gate    *Gate
	caller  tool.Caller
	module  tool.Module
	tool    string
	granted capability.Effective
	ended   context.Context // ends with the call
	most    int64           // operations
	asked   atomic.Int64
	http    atomic.Int64 // requests asked for
	told    sync.Map     // commands that were logged
}

// operation does one operation, and writes down what it finds out about it.
type operation func(context.Context, abi.Request, *Record) abi.Response

// audited tells the audit, and turns a panic of what is behind it into a refusal.
func (s *call) audited(next operation) operation {
	return func(ctx context.Context, r abi.Request, rec *Record) (response abi.Response) {
		began := s.gate.o.Now()
		*rec = Record{Caller: s.caller, Module: s.module.Name, Digest: s.module.Digest, Tool: s.tool, Op: known(r.Op)}
		defer func() {
			if v := recover(); v != nil {
				s.gate.o.Logger.ErrorContext(ctx, "a gated operation panicked", "op", string(rec.Op), "module", s.module.Name,
					"panic", s.clean(fmt.Sprint(v)), "stack", string(debug.Stack()))
				response = abi.Refuse(abi.Unavailable, string(rec.Op)+": the operation failed")
			}
			rec.Code, rec.Took = response.Code, s.gate.o.Now().Sub(began)
			s.gate.o.Audit.Gated(ctx, *rec)
		}()
		return next(ctx, r, rec)
	}
}

// known keeps what a guest made up out of records.
func known(op abi.Op) abi.Op {
	if op.Capability() == "" {
		return "unknown"
	}
	return op
}

// living refuses what is asked for after the end of the call, and ends with it
// what is under way.
func (s *call) living(next operation) operation {
	return func(ctx context.Context, r abi.Request, rec *Record) abi.Response {
		if ctx.Err() != nil || s.ended.Err() != nil {
			return abi.Refuse(abi.Cancelled, string(rec.Op)+": the call has ended")
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ended, cancel)()
		return next(ctx, r, rec)
	}
}

// metered holds the call to its budgets.
func (s *call) metered(next operation) operation {
	return func(ctx context.Context, r abi.Request, rec *Record) abi.Response {
		if s.asked.Add(1) > s.most {
			return abi.Refuse(abi.Limit, fmt.Sprintf("%s: the call has used up its %d host calls (%s)", rec.Op, s.most, abi.LimitHostCalls.Key()))
		}
		if most := s.gate.o.MaxHTTP; r.Op == abi.OpHTTP && s.http.Add(1) > most {
			return abi.Refuse(abi.Limit, fmt.Sprintf("%s: the call has made %d requests, which is all that one call may make", rec.Op, most))
		}
		return next(ctx, r, rec)
	}
}

// checked lets through what is granted at all. What an operation is about is
// decided where it is known.
func (s *call) checked(next operation) operation {
	return func(ctx context.Context, r abi.Request, rec *Record) abi.Response {
		if r.Op.Capability() == "" {
			return abi.Refuse(abi.Invalid, fmt.Sprintf("unknown operation %+q", abi.Cut(string(r.Op), 40)))
		}
		if refusal := s.granted.Allows(r.Op); refusal != nil {
			s.tell(ctx, refusal)
			return refused(refusal)
		}
		return next(ctx, r, rec)
	}
}

// tell logs what a person could allow, with the command; each once in a call, which
// may ask for the same a thousand times.
func (s *call) tell(ctx context.Context, r *capability.Refusal) {
	if r.Do == "" {
		return
	}
	if _, told := s.told.LoadOrStore(r.Do, true); !told {
		s.gate.o.Logger.WarnContext(ctx, "a tool was refused what nobody has allowed", "module", s.module.Name, "tool", s.tool, "allow", s.clean(r.Do))
	}
}

func refused(r *capability.Refusal) abi.Response { return abi.Refuse(r.Code, r.Text) }

// served does the operation.
func (s *call) served(ctx context.Context, r abi.Request, rec *Record) abi.Response {
	switch r.Op {
	case abi.OpHTTP:
		return s.request(ctx, r, rec)
	case abi.OpKVGet, abi.OpKVSet, abi.OpKVDelete:
		return s.value(ctx, r, rec)
	case abi.OpTracker:
		return s.track(ctx, r, rec)
	}
	return abi.Refuse(abi.Unavailable, fmt.Sprintf("%s: this version of hutch has nothing behind it", r.Op))
}

// value serves the module's own storage. Each principal has a storage of its own.
func (s *call) value(ctx context.Context, r abi.Request, rec *Record) abi.Response {
	rule, ok := s.granted.KV()
	switch {
	case !ok:
		return abi.Refuse(abi.Denied, string(r.Op)+": not granted")
	case s.gate.o.KV == nil:
		return abi.Refuse(abi.Unavailable, string(r.Op)+": values are kept by the process that owns the state folder alone: "+
			"call the tool through hutch serve or hutch mcp")
	}
	response := s.gate.o.KV.Serve(ctx, kv.Access{
		Module: s.module.Name, Tenant: s.caller.Principal, Writer: s.tool + " " + s.caller.CallID, MaxBytes: rule.Max, TTL: rule.TTL,
	}, r)
	rec.Sent, rec.Received = int64(len(r.Body)), int64(len(response.Body))
	return response
}

// clean takes secrets out of a text.
func (s *call) clean(text string) string {
	if s.gate.o.Secrets == nil {
		return text
	}
	text, _ = s.gate.o.Secrets.Redactor().Text(text)
	return text
}
