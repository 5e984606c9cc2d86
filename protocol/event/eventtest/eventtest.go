// Package eventtest checks streams of events as the clients of AG-UI 1.0 do, and as
// its specification does where they do not. It shares no code with [event.Guard].
package eventtest

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/hutch-run/hutch/protocol/event"
)

// Collect returns the events of a stream, and its errors.
func Collect(stream iter.Seq2[event.Event, error]) (events []event.Event, errs []error) {
	for e, err := range stream {
		if e != nil {
			events = append(events, e)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return events, errs
}

// Conforms fails a test whose events, written down, no client would take. many allows
// several runs, and none.
func Conforms(t testing.TB, many bool, events ...event.Event) {
	t.Helper()
	if err := Verify(many, events...); err != nil {
		t.Errorf("%v in\n%s", err, Text(events...))
	}
}

// Text is events as they stand on the wire, one a line.
func Text(events ...event.Event) (text string) {
	for _, e := range events {
		wire, err := event.Encode(e)
		if err != nil {
			wire = fmt.Append(nil, err)
		}
		text += string(wire) + "\n"
	}
	return text
}

// Verify returns the first rule that events break. Each is looked at as it is written.
func Verify(many bool, events ...event.Event) error {
	v := &verifier{}
	for i, e := range events {
		wire, err := event.Encode(e)
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		var m members
		if err := json.Unmarshal(wire, &m); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if err := v.see(m, i == 0); err != nil {
			return fmt.Errorf("event %d, %s: %w", i, m.Type, err)
		}
	}
	switch {
	case !many && v.runs != 1:
		return fmt.Errorf("%d runs, want one", v.runs)
	case v.running, !many && len(events) == 0:
		return fmt.Errorf("the stream ends before its run")
	}
	return nil
}

// members are those of any event that a rule is about.
type members struct {
	Type                                          string
	ThreadID, RunID, ProtocolVersion              string
	MessageID, ToolCallID, ToolCallName, StepName string
	ParentMessageID, SubagentRunID, EntityID      string
	ParentSubagentRunID, Subtype                  string
	Replace                                       *bool
	Result                                        json.RawMessage
	Outcome                                       *event.Outcome
	Messages                                      []history
	Input                                         struct{ Messages []history }
}

type history struct {
	ID, Role  string
	ToolCalls []struct{ ID string }
}

type verifier struct {
	running     bool
	runs        int
	thread, run string
	open        map[string]bool
	owner       map[string]string
	called      []string
	answered    map[string]bool
	subagent    map[string]bool
}

func (v *verifier) see(m members, first bool) error {
	switch {
	case m.Type == "RUN_STARTED" && v.running:
		return fmt.Errorf("in a run")
	case m.Type == "RUN_STARTED":
		return v.start(m)
	case m.Type == "RUN_ERROR" && (first || v.running):
		if first {
			v.runs++
		}
		v.running = false
		return v.noStep()
	case !v.running:
		return fmt.Errorf("outside a run")
	case m.Type == "RUN_FINISHED":
		return v.finish(m)
	}
	return v.inside(m)
}

func (v *verifier) start(m members) error {
	*v = verifier{
		running: true, runs: v.runs + 1, thread: m.ThreadID, run: m.RunID,
		open: map[string]bool{}, owner: map[string]string{}, answered: map[string]bool{}, subagent: map[string]bool{},
	}
	if m.ProtocolVersion == "" {
		return fmt.Errorf("no version")
	}
	v.remember(m.Input.Messages)
	return nil
}

func (v *verifier) remember(messages []history) {
	for _, m := range messages {
		bucket := "message "
		if m.Role == "reasoning" {
			bucket = "reasoning "
		}
		v.owner[bucket+m.ID] = ""
		for _, c := range m.ToolCalls {
			v.owner["call "+c.ID] = ""
		}
	}
}

func (v *verifier) noStep() error {
	for name, open := range v.open {
		if open && name[:4] == "step" {
			return fmt.Errorf("%s is open", name)
		}
	}
	return nil
}

func (v *verifier) finish(m members) error {
	v.running = false
	for name, open := range v.open {
		if open {
			return fmt.Errorf("%s is open", name)
		}
	}
	for name, active := range v.subagent {
		if active {
			return fmt.Errorf("subagent %s is active", name)
		}
	}
	pending := slices.DeleteFunc(slices.Clone(v.called), func(id string) bool { return v.answered[id] })
	switch o := m.Outcome; {
	case m.ThreadID != v.thread || m.RunID != v.run:
		return fmt.Errorf("the ids of another run")
	case o == nil:
		return fmt.Errorf("no outcome")
	case o.Type == event.Success && !slices.Equal(o.PendingToolCallIDs, pending):
		return fmt.Errorf("pending are %q, not %q", pending, o.PendingToolCallIDs)
	case o.Type == event.Cancelled && m.Result != nil:
		return fmt.Errorf("a result of a cancelled run")
	case o.Type == event.Interrupted:
		seen := map[string]bool{}
		for _, i := range o.Interrupts {
			if seen[i.ID] {
				return fmt.Errorf("interrupt %s twice", i.ID)
			}
			seen[i.ID] = true
		}
	}
	return nil
}

func (v *verifier) inside(m members) error {
	switch m.Type {
	case "STEP_STARTED", "STEP_FINISHED":
		return v.turn(fmt.Sprintf("step %q %q", m.SubagentRunID, m.StepName), m.Type == "STEP_STARTED")
	case "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END":
		return v.span("message "+m.MessageID, "message "+m.MessageID, m)
	case "REASONING_START", "REASONING_END":
		return v.span("span "+m.MessageID, "reasoning "+m.MessageID, m)
	case "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END":
		return v.span("reasoning "+m.MessageID, "reasoning "+m.MessageID, m)
	case "TOOL_CALL_START":
		return v.call(m)
	case "TOOL_CALL_ARGS", "TOOL_CALL_END":
		return v.span("call "+m.ToolCallID, "call "+m.ToolCallID, m)
	case "TOOL_CALL_RESULT":
		if v.answered[m.ToolCallID] || v.open["call "+m.ToolCallID] {
			return fmt.Errorf("%s is answered twice, or before its end", m.ToolCallID)
		}
		v.answered[m.ToolCallID] = true
		v.owner["message "+m.MessageID] = m.SubagentRunID
	case "REASONING_ENCRYPTED_VALUE":
		return v.encrypted(m)
	case "ACTIVITY_SNAPSHOT":
		if _, known := v.owner["activity "+m.MessageID]; !known || m.Replace == nil || *m.Replace {
			v.owner["activity "+m.MessageID] = m.SubagentRunID
		}
	case "ACTIVITY_DELTA":
		return v.same("activity "+m.MessageID, m.SubagentRunID)
	case "MESSAGES_SNAPSHOT":
		if len(m.Messages) == 0 {
			return fmt.Errorf("no message")
		}
		v.remember(m.Messages)
	case "SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR":
		return v.sub(m)
	case "TEXT_MESSAGE_CHUNK", "TOOL_CALL_CHUNK", "REASONING_MESSAGE_CHUNK":
		return fmt.Errorf("a chunk")
	}
	return nil
}

func (v *verifier) turn(name string, on bool) error {
	if v.open[name] == on {
		return fmt.Errorf("%s: open is %v already", name, on)
	}
	v.open[name] = on
	return nil
}

// span checks what opens, continues or closes something that has an owner.
func (v *verifier) span(name, owner string, m members) error {
	if err := v.same(owner, m.SubagentRunID); err != nil {
		return err
	}
	switch m.Type[len(m.Type)-4:] {
	case "TART":
		if _, known := v.owner[owner]; !known {
			v.owner[owner] = m.SubagentRunID
		}
		return v.turn(name, true)
	case "_END":
		return v.turn(name, false)
	}
	if !v.open[name] {
		return fmt.Errorf("%s is not open", name)
	}
	return nil
}

func (v *verifier) same(name, subagent string) error {
	if owner, known := v.owner[name]; known && subagent != "" && subagent != owner {
		return fmt.Errorf("%s is of %q, not of %q", name, owner, subagent)
	}
	return nil
}

func (v *verifier) call(m members) error {
	if m.ParentMessageID == "" {
		return fmt.Errorf("no parentMessageId")
	}
	if slices.Contains(v.called, m.ToolCallID) {
		return fmt.Errorf("called twice")
	}
	if err := v.same("message "+m.ParentMessageID, m.SubagentRunID); err != nil {
		return err
	}
	v.called = append(v.called, m.ToolCallID)
	inherited, known := v.owner["message "+m.ParentMessageID]
	if before, ok := v.owner["call "+m.ToolCallID]; ok {
		if known && m.SubagentRunID == "" && inherited != before {
			return fmt.Errorf("of %q, and its message of %q", before, inherited)
		}
	} else if known && m.SubagentRunID == "" {
		v.owner["call "+m.ToolCallID] = inherited
	}
	return v.span("call "+m.ToolCallID, "call "+m.ToolCallID, m)
}

func (v *verifier) encrypted(m members) error {
	if m.Subtype == "tool-call" {
		return v.same("call "+m.EntityID, m.SubagentRunID)
	}
	if _, known := v.owner["message "+m.EntityID]; known {
		return v.same("message "+m.EntityID, m.SubagentRunID)
	}
	return v.same("reasoning "+m.EntityID, m.SubagentRunID)
}

func (v *verifier) sub(m members) error {
	active, known := v.subagent[m.SubagentRunID]
	if m.Type != "SUBAGENT_STARTED" {
		if !active {
			return fmt.Errorf("%s is not active", m.SubagentRunID)
		}
		v.subagent[m.SubagentRunID] = false
		return nil
	}
	if known {
		return fmt.Errorf("%s was started already", m.SubagentRunID)
	}
	if _, ok := v.subagent[m.ParentSubagentRunID]; m.ParentSubagentRunID != "" && !ok {
		return fmt.Errorf("its parent was not started")
	}
	v.subagent[m.SubagentRunID] = true
	return nil
}
