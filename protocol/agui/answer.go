package agui

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/hutch-run/hutch/protocol/event"
)

// A refusal is an answer that is no stream: the run never started.
type refusal struct {
	status int
	retry  bool
	hangUp bool   // end the connection too
	Code   string `json:"code"`
	// Field is the path of the member of the request that is wrong.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// RequestID is the id of the request, if it got one before it came here.
	RequestID string `json:"requestId,omitempty"`
}

// requestHeader is where an answer has the id of its request.
const requestHeader = "X-Request-Id"

// refusalOf returns the answer for an error, and whether a client is better served by
// it than by a stream that fails.
func refusalOf(err error) (*refusal, bool) {
	switch {
	case errors.Is(err, event.ErrNotFound):
		answer := &refusal{status: http.StatusNotFound, Code: "not_found", Message: "no such thread or run"}
		if f := (*event.Failure)(nil); errors.As(err, &f) { // it says what it is that is not there
			answer.Message = f.Message
		}
		return answer, true
	case errors.Is(err, event.ErrNotRunning):
		return &refusal{status: http.StatusConflict, Code: "not_running", Message: "no run of the thread is in progress"}, true
	}
	told := event.ErrorOf(err)
	answer := &refusal{status: http.StatusInternalServerError, Code: told.Code, Message: told.Message}
	for _, known := range []struct {
		code   string
		status int
		retry  bool
	}{
		{event.CodeInvalid, http.StatusBadRequest, false},
		{event.CodeForbidden, http.StatusForbidden, false},
		{event.CodeBusy, http.StatusTooManyRequests, true},
		{event.CodeUnavailable, http.StatusServiceUnavailable, true},
		{event.CodeShutdown, http.StatusServiceUnavailable, true},
	} {
		if told.Code == known.code {
			answer.status, answer.retry = known.status, known.retry
			return answer, true
		}
	}
	return answer, false
}

// fail answers a request that got an error, and logs one that is ours.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	answer, known := refusalOf(err)
	if !known {
		s.o.Logger.ErrorContext(r.Context(), "agui: a request failed", "route", r.Pattern, "error", err)
		if answer.Code == event.CodeInternal {
			answer.Message = "hutch could not answer: its log says why"
		}
	}
	s.refuse(w, answer)
}

func (s *Server) refuse(w http.ResponseWriter, answer *refusal) {
	if answer.retry {
		w.Header().Set("Retry-After", "5")
	}
	if answer.hangUp {
		w.Header().Set("Connection", "close")
	}
	answer.RequestID = w.Header().Get(requestHeader)
	s.answer(w, answer.status, map[string]*refusal{"error": answer})
}

func (s *Server) answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		s.o.Logger.Error("agui: answer", "error", err)
		status, text = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer could not be written: the log says why"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if _, err := w.Write(append(text, '\n')); err != nil {
		s.o.Logger.Debug("agui: answer", "error", err)
	}
}
