package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// failures maps what can go wrong with a call to what a host is told, in this
// order. A failure with a hint is a result that the model reads: the error's
// own text if it may be shown and says more, else the hint. A failure without
// either looks like a tool that does not exist, whatever the reason is.
var failures = []struct {
	is   error
	own  bool
	hint string
}{
	{tool.ErrNotFound, false, ""},
	{tool.ErrDenied, true, ""},
	{tool.ErrHeld, false, ""},
	{tool.ErrRejected, false, ""},
	{tool.ErrInvalid, true, "the arguments do not fit the tool's schema: correct them and call again"},
	{tool.ErrTimeout, true, hintTimeout},
	{tool.ErrLimit, true, "the tool ran into a limit and was stopped: ask it for less at once"},
	{tool.ErrBusy, true, "the tool is busy with other calls: call again in a moment"},
	{tool.ErrCancelled, true, hintCancelled},
	{tool.ErrFailed, true, "the tool broke: other arguments may work, the same ones will not"},
	{tool.ErrUnavailable, true, "the tool cannot run right now: call again in a while"},
	{context.DeadlineExceeded, false, hintTimeout},
	{context.Canceled, false, hintCancelled},
}

const (
	hintTimeout   = "the tool took too long and was stopped: ask it for less at once"
	hintCancelled = "the call was cancelled"
)

// failureText returns what a model reads about err. It is empty if the tool
// shall look as if it did not exist; known is false for an error that nobody
// outside shall see.
func failureText(err error) (text string, known bool) {
	for _, f := range failures {
		switch {
		case !errors.Is(err, f.is):
		case f.own && err.Error() != f.is.Error():
			return abi.Cut(err.Error(), maxErrorText), true
		default:
			return f.hint, true
		}
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
	return rpcError(jsonrpc.CodeInvalidParams, tool.NotFound(abi.Cut(name, maxShownName)).Error())
}

// requestHeader is where an HTTP request and its answer have the id of the request, if who
// stands before us gave it one.
const requestHeader = "X-Request-Id"

// requestData is what an error says of the request that it answers.
type requestData struct {
	RequestID string `json:"requestId"`
}

// withRequest adds the id of a request to an error that has no other data.
func withRequest(err error, id string) error {
	var coded *jsonrpc.Error
	if id == "" || !errors.As(err, &coded) || coded.Data != nil {
		return err
	}
	data, failed := json.Marshal(requestData{abi.Cut(id, maxID)})
	if failed != nil {
		return err
	}
	told := *coded
	told.Data = data
	return &told
}

func internalError(id string) *jsonrpc.Error {
	return rpcError(jsonrpc.CodeInternalError, "internal error "+id)
}

func rpcError(code int64, text string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: text}
}
