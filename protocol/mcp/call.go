package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

const (
	local = "local"
	face  = "mcp"

	codeInvalidRequest = jsonrpc.CodeInvalidRequest
	codeInvalidParams  = jsonrpc.CodeInvalidParams

	// firstModern is the revision that did away with MCP sessions; lastLegacy
	// the one before it. Revisions are dates and compare as text.
	firstModern = "2026-07-28"
	lastLegacy  = "2025-11-25"
)

func isModern(version string) bool { return version >= firstModern }

// receive sees every request of every connection before go-sdk does. No panic
// and no error without a code leaves it.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		ctx, request := s.within(ctx, req)
		defer func() {
			if p := recover(); p != nil {
				s.logPanic(ctx, method, p)
				res, err = nil, internalError("")
			}
			var coded *jsonrpc.Error
			if err != nil && !errors.As(err, &coded) {
				err = rpcError(codeInvalidRequest, abi.Cut(err.Error(), maxErrorText))
			}
			err = withRequest(err, request)
		}()
		if session, ok := req.GetSession().(*sdk.ServerSession); ok && session.ID() != "" {
			// Over HTTP its own request may be gone by now.
			if done := s.sessions.acquire(session.ID(), principalOf(ctx)); done != nil {
				defer done()
			}
		}
		switch req := req.(type) {
		case *sdk.ListToolsRequest:
			return s.listTools(ctx, req)
		case *sdk.CallToolRequest:
			return s.callTool(ctx, req)
		case *sdk.ServerRequest[*sdk.InitializeParams]:
			// go-sdk answers with a legacy revision, but goes by what was asked
			// for: it would take this client for a modern one.
			if req.Params != nil && isModern(req.Params.ProtocolVersion) {
				req.Params.ProtocolVersion = lastLegacy
			}
			defer func() {
				if err == nil {
					s.sessions.opened(ctx, req.Session)
				}
			}()
		case *sdk.InitializedRequest:
			defer func() {
				if err == nil {
					s.audience.join(req.Session, s.sdk.Sessions())
				}
			}()
		}
		return next(ctx, method, req)
	}
}

// within returns the context of a message, and the id of its HTTP request, if it came with
// one: what handles a message of a legacy session has that of its initialize.
func (s *Server) within(ctx context.Context, req sdk.Request) (within context.Context, request string) {
	extra := req.GetExtra()
	if extra == nil || extra.Header == nil {
		return ctx, ""
	}
	if s.o.Context != nil {
		ctx = s.o.Context(ctx, extra.Header)
	}
	return ctx, extra.Header.Get(requestHeader)
}

// caller says who calls. Nothing in it comes from the peer but the id of the
// MCP session, which go-sdk gave out.
func (s *Server) caller(ctx context.Context, session *sdk.ServerSession) tool.Caller {
	return tool.Caller{
		Principal:    principalOf(ctx),
		Agent:        s.o.Agent,
		Conversation: session.ID(),
		CallID:       rand.Text(),
		Face:         face,
	}
}

// callTool answers tools/call.
func (s *Server) callTool(ctx context.Context, req *sdk.CallToolRequest) (sdk.Result, error) {
	modern := isModern(req.ProtocolVersion())
	fail := func(text string) (sdk.Result, error) { return newResult(tool.Failed(text), modern), nil }
	if !s.enter() {
		return nil, rpcError(CodeNotBegun, notBegun().text)
	}
	defer s.calls.Done()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return fail(fmt.Sprintf("%d calls are running, the most allowed: call again when one has ended", cap(s.slots)))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()

	caller := s.caller(ctx, req.Session)
	report := s.startReporter(ctx, req)
	res, err := s.run(ctx, caller, tool.Call{Name: req.Params.Name, Arguments: arguments(req), Progress: report.progress()})
	streamed := report.stop()
	if err == nil {
		err = checkResult(res)
	}
	if err == nil {
		return newResult(res, modern), nil
	}
	text, known := failureText(err)
	switch {
	case s.life.Err() != nil:
		return fail("the server is shutting down, the call was cancelled")
	case !known:
		s.o.Logger.ErrorContext(ctx, "mcp: call failed", "call", caller.CallID, "tool", abi.Cut(req.Params.Name, maxShownName), "error", abi.Cut(err.Error(), maxErrorText))
		return nil, internalError(caller.CallID)
	case text == "" && streamed:
		// The HTTP status of this error can no longer be sent.
		return fail(notFound(req.Params.Name).Message)
	case text == "":
		return nil, notFound(req.Params.Name)
	}
	return newResult(tool.WithUsage(tool.Failed(text), tool.UsageOf(err)), modern), nil
}

// arguments returns those of a call. Hosts leave them out, or send null, for a
// tool that takes none.
func arguments(req *sdk.CallToolRequest) json.RawMessage {
	if raw := req.Params.Arguments; len(raw) > 0 && string(raw) != "null" {
		return raw
	}
	return json.RawMessage("{}")
}

// run is Tools.Call whose panic is an error.
func (s *Server) run(ctx context.Context, caller tool.Caller, call tool.Call) (res tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(ctx, "call "+caller.CallID, p)
			res, err = tool.Result{}, errors.New("panic")
		}
	}()
	return s.tools.Call(ctx, caller, call)
}

// progressToken returns what the client wants its progress marked with, nil if
// it wants none. go-sdk has read a number as a float64 by now: one that may have
// been rounded would name nothing.
func progressToken(req *sdk.CallToolRequest) any {
	switch token := req.Params.GetProgressToken().(type) {
	case string:
		if len(token) <= maxID { // it goes out again with every report
			return token
		}
	case float64:
		if token == math.Trunc(token) && math.Abs(token) <= maxSafe {
			return token
		}
	}
	return nil
}
