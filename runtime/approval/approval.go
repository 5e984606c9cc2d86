// Package approval asks a person whether a call of a tool may be carried out, and reads
// what they decided.
//
// A question ([Ask]) carries its call, with the arguments that were shown: what is carried
// out later is what a kept question says ([Of]), and never what an answer brings. What is
// not clearly a yes, given in time, is none ([Decide]).
package approval

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/prompt"
)

// Reason is the reason of a question whether a tool may be called.
const Reason = "tool_call"

// schema is what the answer to such a question has to look like.
const schema = `{"type":"object","properties":{"approved":{"type":"boolean"}},"required":["approved"]}`

// A Call is what a person is asked about.
type Call struct {
	ID string
	// Message is the id of the message that it stands in.
	Message string
	Tool    string
	// Arguments are a JSON object, as the model wrote it.
	Arguments string
}

// kept is what a question carries with it, so that nothing else is carried out than
// what was shown.
type kept struct {
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	Message   string `json:"message"` // id of the one with the call
}

// mostShown is how much of the arguments a question shows, in bytes. All of them stand
// in the call, and in the question's metadata.
const mostShown = 2000

// Ask is the question about a call, which can be answered until a time. The policy's own
// question is shown if there is one.
func Ask(c Call, question string, until time.Time) (event.Interrupt, error) {
	meta, err := json.Marshal(kept{c.Tool, c.Arguments, c.Message})
	if err != nil {
		return event.Interrupt{}, err
	}
	text := visible(prompt.Short(question, mostShown))
	if text == "" {
		text = fmt.Sprintf("Allow %s with %s?", visible(c.Tool), visible(prompt.Short(c.Arguments, mostShown)))
	}
	return event.Interrupt{
		ID: c.Message + ":" + c.ID + ":ask", Reason: Reason, Message: text, ToolCallID: c.ID, Metadata: meta,
		ResponseSchema: json.RawMessage(schema),
		ExpiresAt:      until.UTC().Format(time.RFC3339),
	}, nil
}

// Of is the call that a question is about; ok is false if it is about none.
func Of(i event.Interrupt) (c Call, ok bool) {
	var k kept
	if i.Reason != Reason || i.ToolCallID == "" || json.Unmarshal(i.Metadata, &k) != nil || k.Tool == "" || k.Message == "" {
		return Call{}, false
	}
	return Call{ID: i.ToolCallID, Message: k.Message, Tool: k.Tool, Arguments: k.Arguments}, true
}

// A Verdict is what a person decided, or did not.
type Verdict int

// The verdicts.
const (
	Undecided Verdict = iota
	Approved
	Denied
	// Expired: nobody decided in time, whatever they say now.
	Expired
)

// A Decision is a verdict, and the payload that says so as it came.
type Decision struct {
	Verdict
	Payload json.RawMessage
	// Unread says that there was an answer which says neither yes nor no.
	Unread bool
}

// Decide is what the entries of an input say about a question. Of several entries a denial
// counts.
func Decide(i event.Interrupt, answers []event.Resume, now time.Time) (d Decision) {
	for _, e := range answers {
		if e.InterruptID != i.ID {
			continue
		}
		one := Undecided
		switch e.Status {
		case event.ResumeCancelled:
			one = Denied
		case event.ResumeResolved:
			if one = verdictOf(e.Payload); one == Undecided {
				d.Unread = true
			}
		}
		if one != Undecided && d.Verdict != Denied {
			d.Verdict, d.Payload = one, e.Payload
		}
	}
	if lateFor(i, now) {
		d.Verdict, d.Payload = Expired, nil
	}
	return d
}

func verdictOf(payload json.RawMessage) Verdict {
	var p struct {
		Approved *bool `json:"approved"`
	}
	switch err := json.Unmarshal(payload, &p); {
	case err != nil || p.Approved == nil:
		return Undecided
	case *p.Approved:
		return Approved
	}
	return Denied
}

// lateFor reports whether nobody answered a question in time.
func lateFor(i event.Interrupt, now time.Time) bool {
	end, err := time.Parse(time.RFC3339, i.ExpiresAt)
	return err == nil && !now.Before(end)
}

// Refusal is what the model reads of a call that a person did not allow: literally what
// they answered is part of it.
func Refusal(d Decision) string {
	if d.Verdict == Expired {
		return prompt.NotRun("denied", "nobody allowed it in time", "do not try again; go on without it, or tell the person")
	}
	text := prompt.NotRun("denied", "a person was asked and did not allow it", "do not try again; go on without it, or ask the person what they want")
	const most = 4 << 10
	if len(d.Payload) > most || !json.Valid(d.Payload) {
		return text
	}
	return strings.TrimSuffix(text, "}") + `,"response":` + string(d.Payload) + "}"
}

// visible writes what a person could not see, or would see at another place, as JSON
// writes it in a string.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		switch {
		case !hidden(c):
			b.WriteRune(c)
		case c > 0xFFFF:
			fmt.Fprintf(&b, `\u{%x}`, c)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

func hidden(c rune) bool {
	return !unicode.IsGraphic(c) || unicode.Is(unicode.Variation_Selector, c) || c != ' ' && unicode.Is(unicode.Zs, c)
}
