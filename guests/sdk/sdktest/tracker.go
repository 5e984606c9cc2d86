package sdktest

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
)

// track asks the handler as a host asks a tracker.
func (r *recorder) track(op abi.Op, body []byte) abi.Response {
	if len(r.requests.Tracker) == 0 {
		return deny(op, "the module's Requests have no Tracker: declare it, or a host denies it")
	}
	var in abi.TrackerRequest
	if err := strictly(body, &in); err != nil {
		return invalid(op, err.Error())
	}
	if !strings.HasPrefix(in.Path, "/") || strings.ContainsAny(in.Path, "?# ") {
		return invalid(op, "the path is not escaped as one, or does not begin with /")
	}
	if r.host.Tracker == nil {
		return abi.Refuse(abi.Unavailable, string(op)+": tracker_unavailable: no tracker is set up here")
	}
	query := url.Values{}
	for name, value := range in.Query {
		query.Set(name, value)
	}
	target := in.Path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	request := httptest.NewRequest(in.Method, target, bytes.NewReader(in.Body))
	if len(in.Body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	answer := httptest.NewRecorder()
	r.host.Tracker.ServeHTTP(answer, request)
	out := abi.TrackerResponse{Status: answer.Code, Body: answer.Body.Bytes()}
	if !json.Valid(out.Body) {
		out.Body = json.RawMessage("null")
	}
	result, err := json.Marshal(out)
	if err != nil {
		return invalid(op, err.Error())
	}
	return abi.Response{Body: result}
}
