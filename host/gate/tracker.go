package gate

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/hutch-run/hutch/host/trackerproxy"
	"github.com/hutch-run/hutch/protocol/abi"
)

// track asks the tracker in the name of the caller.
func (s *call) track(ctx context.Context, r abi.Request, rec *Record) abi.Response {
	if s.gate.o.Tracker == nil {
		return abi.Refuse(abi.Unavailable, string(r.Op)+": tracker_unavailable: no tracker is set up here")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	response := s.gate.o.Tracker.Serve(ctx, trackerproxy.Access{
		Principal: s.caller.Principal, Agent: s.caller.Agent, Module: s.module.Name, Tool: s.tool, Scopes: s.granted.Tracker(),
	}, r)
	rec.Sent, rec.Received = int64(len(r.Body)), int64(len(response.Body))
	if forbidden(response) {
		s.tellTracker(ctx, r)
	}
	return response
}

// forbidden reports whether the host or the tracker itself said no.
func forbidden(r abi.Response) bool {
	const most = 64 << 10 // no refusal is larger
	if r.Code != abi.OK || len(r.Body) > most {
		return r.Code == abi.Denied
	}
	var answer struct{ Status int }
	return json.Unmarshal(r.Body, &answer) == nil && answer.Status == http.StatusForbidden
}

// tellTracker logs what a tool was refused at the tracker: of what needs the same scope, the
// first thing in a call.
func (s *call) tellTracker(ctx context.Context, r abi.Request) {
	about, scope := trackerproxy.Needs(r)
	if _, told := s.told.LoadOrStore("tracker "+scope, true); !told {
		s.gate.o.Logger.WarnContext(ctx, "a tool was refused something at the tracker", "module", s.module.Name, "tool", s.tool,
			"principal", s.caller.Principal, "agent", s.caller.Agent, "asked", s.clean(about), "scope", scope)
	}
}
