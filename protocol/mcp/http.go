package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/abi"
)

const (
	maxBody       = 4 << 20
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
)

// An endpoint is one URL for both eras: go-sdk has a handler for each.
type endpoint struct {
	s              *Server
	legacy, modern http.Handler
}

func (s *Server) newHandler() http.Handler {
	get := func(*http.Request) *sdk.Server { return s.sdk }
	log := sdkLogger(s.o.Logger)
	// Hosts are checked by who stands before us: go-sdk takes LOCALHOST for a stranger.
	return &endpoint{
		s: s,
		legacy: sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
			DisableLocalhostProtection: true, MaxRequestBodyBytes: maxBody, Logger: log,
		}),
		modern: sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
			Stateless: true, PropagateRequestCancellation: true,
			DisableLocalhostProtection: true, MaxRequestBodyBytes: maxBody, Logger: log,
		}),
	}
}

// ServeHTTP checks a request in the order in which a stranger learns least:
// who sent it, what it claims to be, how big it is, what it says.
func (h *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			h.s.logPanic(r.Context(), "serve "+r.Method, p)
		}
	}()
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold back a stream
	r, ok := h.identified(r)
	switch {
	case !ok:
		deny(w, "nobody was let in", http.StatusForbidden)
	case h.s.Stopping():
		deny(w, "shutting down", http.StatusServiceUnavailable)
	case ambiguous(r.Header):
		deny(w, "an MCP header was sent twice", http.StatusBadRequest)
	case r.Method == http.MethodPost:
		h.post(w, r)
	case isModern(r.Header.Get(versionHeader)):
		h.modern.ServeHTTP(w, r)
	default:
		h.serveLegacy(w, r)
	}
}

// principalKey is where the context of a request has its principal. What handles a
// message of a legacy session has that of the session's initialize.
type principalKey struct{}

// identified returns the request with who sent it.
func (h *endpoint) identified(r *http.Request) (*http.Request, bool) {
	who := local
	if h.s.o.Principal != nil {
		var ok bool
		if who, ok = h.s.o.Principal(r); !ok || who == "" {
			return r, false
		}
	}
	return r.WithContext(context.WithValue(r.Context(), principalKey{}, who)), true
}

// principalOf returns who sent what ctx belongs to: over a pipe, whoever holds it.
func principalOf(ctx context.Context) string {
	if who, ok := ctx.Value(principalKey{}).(string); ok {
		return who
	}
	return local
}

// ambiguous reports a header that a proxy may have read otherwise than we do.
func ambiguous(header http.Header) bool {
	for _, name := range []string{versionHeader, sessionHeader, "Mcp-Method", "Mcp-Name", "Content-Type"} {
		if len(header.Values(name)) > 1 {
			return true
		}
	}
	return false
}

// deny answers a line of text, with the id of the request if it has one.
func deny(w http.ResponseWriter, text string, code int) {
	if id := w.Header().Get(requestHeader); id != "" {
		text += " (request " + abi.Cut(id, maxID) + ")"
	}
	http.Error(w, text, code)
}

func (h *endpoint) post(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		deny(w, "Content-Type: allowed is application/json", http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		deny(w, "request body: at most 4 MiB", http.StatusRequestEntityTooLarge)
		return
	case err != nil: // the client is gone
		deny(w, "request body: could not be read", http.StatusBadRequest)
		return
	}
	m, refused := readMessage(body)
	modern := isModern(r.Header.Get(versionHeader)) || isModern(m.version)
	if refused == nil {
		refused = h.admit(r, m, modern)
	}
	if refused != nil {
		h.refuse(w, m, refused, modern)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	switch {
	case m.method == "tools/call":
		// A call has ended before its answer is out: Shutdown waits for both.
		if !h.s.enter() {
			deny(w, "shutting down", http.StatusServiceUnavailable)
			return
		}
		defer h.s.calls.Done()
	case opens(r, m, modern):
		p := h.s.sessions.take()
		if p == nil {
			h.refuse(w, m, refusef(jsonrpc.CodeInternalError, "%d sessions are open and in use, the most allowed: close one or try again later", h.s.o.MaxSessions), modern)
			return
		}
		defer h.s.sessions.give(p)
		r = r.WithContext(context.WithValue(r.Context(), placeKey{}, p))
	}
	if modern {
		h.modern.ServeHTTP(w, r)
	} else {
		h.serveLegacy(w, r)
	}
}

// opens reports whether a message opens what stays: a subscription, or an MCP
// session.
func opens(r *http.Request, m message, modern bool) bool {
	if modern {
		return m.method == "subscriptions/listen"
	}
	return m.method == "initialize" && r.Header.Get(sessionHeader) == ""
}

// admit refuses what go-sdk would open an MCP session for though it is no
// initialize.
func (h *endpoint) admit(r *http.Request, m message, modern bool) *refusal {
	if modern || r.Header.Get(sessionHeader) != "" || m.method == "initialize" || m.method == "ping" {
		return nil
	}
	return refusef(jsonrpc.CodeInvalidRequest, "no MCP session: send initialize first, or name revision %s in the header %s", firstModern, versionHeader)
}

// refuse answers as each era wants it: modern clients read the status first,
// older ones treat any but 200 as a broken connection.
func (h *endpoint) refuse(w http.ResponseWriter, m message, r *refusal, modern bool) {
	status := http.StatusBadRequest
	switch {
	case r.code == jsonrpc.CodeMethodNotFound && m.id == nil:
		w.WriteHeader(http.StatusAccepted) // notifications are never answered
		return
	case r.code == jsonrpc.CodeMethodNotFound && modern:
		status = http.StatusNotFound
	case r.code == jsonrpc.CodeInternalError:
		status = http.StatusServiceUnavailable
	case !modern && m.id != nil && (r.code == jsonrpc.CodeMethodNotFound || r.code == jsonrpc.CodeInvalidParams):
		status = http.StatusOK
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(r.answer(m.id, w.Header().Get(requestHeader))); err != nil {
		h.s.o.Logger.Debug("mcp: answer", "error", err)
	}
}
