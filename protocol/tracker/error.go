package tracker

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Error is what the tracker refuses with; on the wire it is {"error":{…}}.
type Error struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
	// Hint says what to do next.
	Hint string `json:"hint,omitempty"`
}

// The codes, each with one status.
const (
	CodeBadRequest   = "bad_request"
	CodeUnauthorized = "unauthorized"
	CodeForbidden    = "forbidden"
	CodeNotFound     = "not_found"
	CodeMethod       = "method_not_allowed"
	// CodeConflict: it cannot be as things stand.
	CodeConflict = "conflict"
	// CodeTaken: somebody has the task; details has the holder.
	CodeTaken = "already_taken"
	// CodeBlocked: the task waits for others; details has blocked_by.
	CodeBlocked = "blocked"
	// CodeTransition: the state machine has no such move; details has allowed.
	CodeTransition = "invalid_transition"
	// CodeCycle: the dependency would close a circle; details has the path.
	CodeCycle = "dependency_cycle"
	// CodeAmbiguous: a reference fits several tasks; details has candidates.
	CodeAmbiguous = "ambiguous"
	// CodeExists: there is one of that name.
	CodeExists = "already_exists"
	// CodeVersion: the task has changed; details has version.
	CodeVersion      = "version_conflict"
	CodePrecondition = "precondition_failed"
	CodeTooLarge     = "too_large"
	CodeMediaType    = "unsupported_media_type"
	// CodeInvalid: a value is none that there is; details has the field.
	CodeInvalid = "invalid"
	// CodeReused: the idempotency key was used for another request.
	CodeReused      = "idempotency_key_reused"
	CodeRateLimited = "rate_limited"
	CodeInternal    = "internal"
	CodeUnavailable = "unavailable"
)

// statuses has the status of every code. It is searched in order, and the first of a status
// is the code of an answer that names none.
func statuses() []struct {
	code   string
	status int
} {
	return []struct {
		code   string
		status int
	}{
		{CodeBadRequest, 400}, {CodeUnauthorized, 401}, {CodeForbidden, 403}, {CodeNotFound, 404}, {CodeMethod, 405},
		{CodeConflict, 409}, {CodeTaken, 409}, {CodeBlocked, 409}, {CodeTransition, 409}, {CodeCycle, 409},
		{CodeAmbiguous, 409}, {CodeExists, 409}, {CodeVersion, 409}, {CodePrecondition, 412}, {CodeTooLarge, 413},
		{CodeMediaType, 415}, {CodeInvalid, 422}, {CodeReused, 422}, {CodeRateLimited, 429}, {CodeInternal, 500},
		{CodeUnavailable, 503},
	}
}

// Status is the HTTP status of the error, 500 for a code that is not known.
func (e *Error) Status() int {
	for _, s := range statuses() {
		if s.code == e.Code {
			return s.status
		}
	}
	return 500
}

// CodeOfStatus is the code of an answer with that status and no readable body.
func CodeOfStatus(status int) string {
	for _, s := range statuses() {
		if s.status == status {
			return s.code
		}
	}
	switch {
	case status >= 500:
		return CodeUnavailable
	case status >= 400:
		return CodeBadRequest
	}
	return CodeInternal
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + ": " + e.Hint
}

// Is makes errors.Is compare codes.
func (e *Error) Is(target error) bool {
	var other *Error
	return errors.As(target, &other) && other.Code == e.Code
}

// Errorf makes an error of a code.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With adds a detail.
func (e *Error) With(name string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[name] = value
	return e
}

// Next says what to do.
func (e *Error) Next(hint string) *Error {
	e.Hint = hint
	return e
}

// quoteMost is how much of a foreign value an error repeats.
const quoteMost = 64

// Quote puts a foreign value in quotes, cut to a length.
func Quote(value string) string {
	if len(value) > quoteMost {
		value = strings.ToValidUTF8(value[:quoteMost], "") + "…"
	}
	return strconv.Quote(value)
}
