package mcp

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hutch-run/hutch/protocol/tool"
)

// failures maps what can go wrong with a call to what a host is told, in this
// order. A failure with a hint is a result that the model reads: the error's
// own text, or the hint if it has none. A failure without one looks like a tool
// that does not exist, whatever the reason is.
var failures = []struct {
	is   error
	hint string
}{
	{tool.ErrNotFound, ""},
	{tool.ErrDenied, ""},
	{tool.ErrHeld, ""},
	{tool.ErrRejected, ""},
	{tool.ErrInvalid, "the arguments do not fit the tool's schema: correct them and call again"},
	{tool.ErrTimeout, "the tool took too long and was stopped: ask it for less at once"},
	{tool.ErrLimit, "the tool ran into a limit and was stopped: ask it for less at once"},
	{tool.ErrCancelled, "the call was cancelled"},
	{tool.ErrFailed, "the tool broke: other arguments may work, the same ones will not"},
	{tool.ErrUnavailable, "the tool cannot run right now: call again in a while"},
	{context.DeadlineExceeded, "the tool took too long and was stopped: ask it for less at once"},
	{context.Canceled, "the call was cancelled"},
}

// failureText returns what a model reads about err. It is empty if the tool
// shall look as if it did not exist; known is false for an error that nobody
// outside shall see.
func failureText(err error) (text string, known bool) {
	for _, f := range failures {
		if !errors.Is(err, f.is) {
			continue
		}
		if f.hint == "" || err.Error() == f.is.Error() || errors.Is(f.is, context.Canceled) || errors.Is(f.is, context.DeadlineExceeded) {
			return f.hint, true
		}
		return cut(err.Error(), maxErrorText), true
	}
	return "", false
}

// maxErrorText bounds an error's text, in bytes; maxShownName a tool's name in
// one.
const (
	maxErrorText = 8 << 10
	maxShownName = 256
)

// notFound answers for every tool a caller may not call (requirement S1-052).
func notFound(name string) *jsonrpc.Error {
	return rpcError(jsonrpc.CodeInvalidParams, tool.NotFound(cut(name, maxShownName)).Error())
}

func internalError(id string) *jsonrpc.Error {
	return rpcError(jsonrpc.CodeInternalError, "internal error "+id)
}

func rpcError(code int64, text string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: text}
}

// cut shortens text to at most n bytes, on a rune boundary.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "..."
}
