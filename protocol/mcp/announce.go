package mcp

import (
	"context"
	"iter"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const methodListChanged = "notifications/tools/list_changed"

// An audience is who may be told of changes outside of a subscription: legacy
// clients once they have sent notifications/initialized (2025-11-25, Lifecycle,
// Initialization). go-sdk would tell everyone who is connected, over stdio
// before it can know the client's era.
type audience struct {
	mu    sync.Mutex
	ready map[*sdk.ServerSession]bool
}

// join lets session be told, and forgets those that are no longer alive.
func (a *audience) join(session *sdk.ServerSession, alive iter.Seq[*sdk.ServerSession]) {
	ready := map[*sdk.ServerSession]bool{session: true}
	a.mu.Lock()
	defer a.mu.Unlock()
	for other := range alive {
		if a.ready[other] {
			ready[other] = true
		}
	}
	a.ready = ready
}

func (a *audience) has(session sdk.Session) bool {
	s, ok := session.(*sdk.ServerSession)
	a.mu.Lock()
	defer a.mu.Unlock()
	return ok && a.ready[s]
}

// send sees every message of ours before go-sdk sends it, and keeps back the
// news of a change from who has not asked for it.
func (s *Server) send(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == methodListChanged && !subscribed(req) && !s.audience.has(req.GetSession()) {
			return nil, nil
		}
		return next(ctx, method, req)
	}
}

// subscribed reports whether a notification belongs to a subscription.
func subscribed(req sdk.Request) bool {
	params := req.GetParams()
	return params != nil && params.GetMeta()[sdk.MetaKeySubscriptionID] != nil
}
