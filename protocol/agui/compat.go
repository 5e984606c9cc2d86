package agui

import (
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// downgraded returns an event as clients of the 0.x generation can read it, which say
// no protocolVersion. They give up on four things that 1.0 has: calls that are pending
// by name, a cancelled run, results that have parts, and files that a provider holds.
// The first they find out by themselves; a run that was cancelled did not succeed, so
// it becomes an error; parts become text.
func downgraded(e event.Event) event.Event {
	switch e := e.(type) {
	case event.RunStarted:
		e.Input = nil
		return e
	case event.RunFinished:
		return oldFinish(e)
	case event.ToolCallResult:
		e.Content = flat(e.Content)
		return e
	case event.MessagesSnapshot:
		e.Messages = slices.Clone(e.Messages)
		for i := range e.Messages {
			e.Messages[i] = oldMessage(e.Messages[i])
		}
		return e
	}
	return e
}

func oldFinish(e event.RunFinished) event.Event {
	if e.Outcome == nil {
		return e
	}
	if e.Outcome.Type == event.Cancelled {
		return event.RunError{Message: "the run was cancelled", Code: event.CodeCancelled, Usage: e.Usage, Base: e.Base}
	}
	outcome := *e.Outcome
	outcome.PendingToolCallIDs = nil
	e.Outcome = &outcome
	return e
}

func oldMessage(m chat.Message) chat.Message {
	switch {
	case m.Role == chat.Tool:
		m.Content = flat(m.Content)
	case m.Role == chat.User && !m.Content.IsText() && !m.Content.IsZero():
		parts := slices.Clone(m.Content.Parts())
		for i, p := range parts {
			if p.Source != nil && p.Source.Type == "file" {
				parts[i] = chat.Part{Type: chat.PartText, Text: mark(p)}
			}
		}
		m.Content = chat.Parts(parts...)
	}
	return m
}

// flat is content as one text. What is no text is named.
func flat(c chat.Content) chat.Content {
	if c.IsText() {
		return c
	}
	var lines []string
	for _, p := range c.Parts() {
		if p.Type == chat.PartText {
			lines = append(lines, p.Text)
		} else {
			lines = append(lines, mark(p))
		}
	}
	return chat.Text(strings.Join(lines, "\n"))
}

// mark stands for a part that a client cannot be shown.
func mark(p chat.Part) string { return "[" + p.Type + "]" }
