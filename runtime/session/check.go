package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/chat"
)

// maxID is the longest id of a thread, a run, a message or a call, in bytes.
const maxID = 512

func checkID(what, id string) error {
	switch {
	case id == "" || len(id) > maxID:
		return fmt.Errorf("%w: %s of %d bytes, allowed are 1 to %d", ErrInvalid, what, len(id), maxID)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: %s that is not UTF-8", ErrInvalid, what)
	case bytes.IndexByte([]byte(id), 0) >= 0:
		return fmt.Errorf("%w: %s with a zero byte", ErrInvalid, what)
	}
	return nil
}

// roles are those that a message which is kept may have.
func roles() []chat.Role {
	return []chat.Role{chat.Developer, chat.System, chat.User, chat.Assistant, chat.Tool, chat.Reasoning}
}

// checkMessage holds a message to what can be kept. Of it nothing else is trusted later.
func checkMessage(m chat.Message, most int) error {
	if err := checkID("id of a message", m.ID); err != nil {
		return err
	}
	if !slices.Contains(roles(), m.Role) {
		return fmt.Errorf("%w: message %s of role %s, allowed are %v", ErrInvalid, quoted(m.ID), quoted(string(m.Role)), roles())
	}
	if m.Role == chat.Tool {
		if err := checkID("toolCallId of "+quoted(m.ID), m.ToolCallID); err != nil {
			return err
		}
	}
	if len(m.ToolCalls) > 0 && m.Role != chat.Assistant {
		return fmt.Errorf("%w: message %s of role %s has toolCalls, only an assistant's may", ErrInvalid, quoted(m.ID), m.Role)
	}
	for _, call := range m.ToolCalls {
		if err := checkID("id of a call in "+quoted(m.ID), call.ID); err != nil {
			return err
		}
	}
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("%w: message %s: %w", ErrInvalid, quoted(m.ID), err)
	}
	if len(body) > most {
		return fmt.Errorf("%w: message %s of %d bytes, at most %d", ErrLimit, quoted(m.ID), len(body), most)
	}
	return nil
}

// quoted shows what came from outside, cut to a length.
func quoted(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "…"
	}
	return fmt.Sprintf("%q", s)
}
