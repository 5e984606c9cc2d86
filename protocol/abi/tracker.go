package abi

import "encoding/json"

const (
	// TrackerMaxRef is the longest segment of a path or value of a query, in bytes, before
	// it is escaped.
	TrackerMaxRef = 512
	// TrackerMaxPath is the longest path, in bytes.
	TrackerMaxPath = 2048
)

// TrackerRequest is the body of tracker_request; the result is a [TrackerResponse].
// The host knows where the tracker is and whose token goes with a request: a guest
// names neither, and cannot say who it is.
//
// Refusals: denied for what is not requested or not granted; invalid for a request
// that is wrong or that no tool has; limit for an answer that is too large;
// unavailable for a tracker that cannot be reached; cancelled. An answer with an error
// status is no refusal.
type TrackerRequest struct {
	// Method is GET, POST, PATCH or DELETE.
	Method string `json:"method"`
	// Path begins with / and is that of the tracker's interface without a prefix, such
	// as /tasks/TE-15/steps. What is not plain in a segment is escaped with %.
	Path string `json:"path"`
	// Query has the parameters, not escaped.
	Query map[string]string `json:"query,omitempty"`
	// Body is a JSON object; absent means none.
	Body json.RawMessage `json:"body,omitempty"`
}

// TrackerResponse is what tracker_request got. Body is JSON; of an error it is
// {"error":{"code":"...","message":"...","hint"?:"..."}}, and null if there is none.
type TrackerResponse struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}
