package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hutch-run/hutch/protocol/abi"
)

// host returns what serves gated operations of call id: it asks the parent and
// waits. The budget is kept here so that the parent may take one question too
// many for a sign that this process is no longer ours.
func (s *server) host(head callHead, id uint64, r *running) abi.Host {
	if !head.Host {
		return nil
	}
	budget := head.Limits.WithDefaults().HostCalls
	return func(ctx context.Context, request abi.Request) abi.Response {
		if !askable(request.Op) {
			return abi.Refuse(abi.Invalid, fmt.Sprintf("unknown operation %q", abi.Cut(string(request.Op), maxOpName)))
		}
		if len(request.Body) > maxGated {
			return abi.Refuse(abi.Limit, fmt.Sprintf("request of %d bytes, at most %d", len(request.Body), maxGated))
		}
		if budget <= 0 {
			return abi.Refuse(abi.Limit, "the call has used up its host calls ("+abi.LimitHostCalls.Key()+")")
		}
		budget--
		s.send(frame{kind: kindAsk, id: id, head: encodeAsk(request.Op), tail: request.Body})
		select {
		case response := <-r.answer:
			return response
		case <-ctx.Done():
			return abi.Refuse(abi.Cancelled, "the call has ended")
		}
	}
}

func (s *server) logger(head callHead, id uint64) func(abi.LogLevel, string) {
	if !head.Log {
		return nil
	}
	limits := head.Limits.WithDefaults()
	left := limits.LogLines + spareLogLines
	return func(level abi.LogLevel, line string) {
		if left <= 0 {
			return
		}
		left--
		line = abi.Cut(line, limits.LogLineBytes+spareLogBytes)
		s.send(frame{kind: kindLog, id: id, head: []byte{byte(level)}, tail: []byte(line)})
	}
}

func (s *server) progress(head callHead, id uint64) func(json.RawMessage) {
	if !head.Progress {
		return nil
	}
	left := maxProgressRun
	return func(step json.RawMessage) {
		if left <= 0 || len(step) > maxProgress {
			return
		}
		left--
		s.send(frame{kind: kindProgress, id: id, tail: step})
	}
}
