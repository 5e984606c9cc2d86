// Package tracker lets a tool ask the tracker: the host adds where it is, whose token
// goes along, and as whom.
//
//	var module = sdk.Serve(sdk.Module{
//		Requests: sdk.Requests{Tracker: []sdk.Scope{{Name: "tasks:read", Reason: "Lists tasks."}}},
//		...
//	})
//
//	err := tracker.Get(c, tracker.Path("tasks", id), nil, &task)
//
// What the tracker refuses is an [*Error]; what the host refuses is a [*sdk.Refusal].
//
// The shipped modules tell what they did in the language of [LanguageOf]; so do the
// errors of [Told].
package tracker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/protocol/abi"
)

// Error is what the tracker refused with.
type Error struct {
	Status  int
	Code    string // such as already_taken; empty if it gave none
	Message string
	Hint    string // what to do next; may be empty
}

// Error returns the message and the hint.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + ": " + e.Hint
}

// Path is the path of segments, each escaped: #15 and what else a reference may have goes
// into a segment as it is. One that is empty, or leads elsewhere, is refused by the host.
func Path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(strings.TrimSpace(s)))
	}
	return b.String()
}

// Get reads what is at path into out, a pointer. Parameters that are empty are left out.
func Get(c *sdk.Call, path string, query map[string]string, out any) error {
	given := map[string]string{}
	for name, value := range query {
		if value != "" {
			given[name] = value
		}
	}
	return ask(c, abi.TrackerRequest{Method: "GET", Path: path, Query: given}, out)
}

// Post sends in, which becomes a JSON object, and reads the answer into out.
func Post(c *sdk.Call, path string, in, out any) error { return send(c, "POST", path, in, out) }

// Patch changes what is at path to what in has, and reads the answer into out.
func Patch(c *sdk.Call, path string, in, out any) error { return send(c, "PATCH", path, in, out) }

// Delete takes away what is at path, and reads the answer into out.
func Delete(c *sdk.Call, path string, out any) error {
	return ask(c, abi.TrackerRequest{Method: "DELETE", Path: path}, out)
}

func send(c *sdk.Call, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("tracker_request: %w", err)
	}
	return ask(c, abi.TrackerRequest{Method: method, Path: path, Body: body}, out)
}

func ask(c *sdk.Call, in abi.TrackerRequest, out any) error {
	var answer abi.TrackerResponse
	if err := c.Ask(sdk.Gated{Op: abi.OpTracker, Import: importRequest}, in, &answer); err != nil {
		return err
	}
	if answer.Status < 200 || answer.Status > 299 {
		return refused(answer)
	}
	if err := json.Unmarshal(answer.Body, out); err != nil {
		return errors.New("the tracker gave an answer that cannot be read")
	}
	return nil
}

func refused(answer abi.TrackerResponse) *Error {
	var body struct {
		Error struct{ Code, Message, Hint string }
	}
	e := &Error{Status: answer.Status, Message: fmt.Sprintf("the tracker answered with status %d", answer.Status)}
	if json.Unmarshal(answer.Body, &body) == nil && body.Error.Message != "" {
		e.Code, e.Message, e.Hint = body.Error.Code, body.Error.Message, body.Error.Hint
	}
	if e.Status >= 500 && e.Hint == "" {
		e.Hint = "tracker_unavailable: try again later"
	}
	return e
}
