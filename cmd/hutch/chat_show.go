package main

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/agui"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/agent"
)

// chatShow writes what happens in a run: texts to standard output, what tools are called
// with and answer in a line each to standard error, or every event as JSON.
type chatShow struct {
	out      io.Writer
	say      *voice
	json     bool
	terminal bool
	colour   bool // of lines about tools
	calls    map[string]*shownCall
	midLine  bool // the last text did not end its line
}

type shownCall struct {
	name string
	args strings.Builder
}

func newChatShow(out io.Writer, say *voice, colour, asJSON bool) *chatShow {
	return &chatShow{out: out, say: say, json: asJSON, terminal: isTerminal(out), colour: colour && isTerminal(say.w), calls: map[string]*shownCall{}}
}

// event shows one event.
func (s *chatShow) event(e event.Event) error {
	if s.json {
		text, err := event.Encode(e)
		if err != nil {
			return err
		}
		if s.terminal {
			text = []byte(printable(string(text)))
		}
		_, err = s.out.Write(append(text, '\n'))
		return err
	}
	switch e := e.(type) {
	case event.TextMessageContent:
		return s.text(e.Delta)
	case event.TextMessageEnd:
		return s.end()
	case event.ToolCallStart:
		s.calls[e.ToolCallID] = &shownCall{name: e.ToolCallName}
	case event.ToolCallArgs:
		if c := s.calls[e.ToolCallID]; c != nil {
			c.args.WriteString(e.Delta)
		}
	case event.ToolCallEnd:
		if c := s.calls[e.ToolCallID]; c != nil {
			return s.line("%s %s", c.name, c.args.String())
		}
	case event.ToolCallResult:
		name := "tool"
		if c := s.calls[e.ToolCallID]; c != nil {
			name = c.name
		}
		return s.line("%s answers %s", name, e.Content.String())
	case event.Custom:
		if e.Name == agent.Warning {
			return s.warning(e.Value)
		}
	}
	return nil
}

// text goes on with an answer.
func (s *chatShow) text(delta string) error {
	if s.terminal {
		delta = printable(delta)
	}
	if delta == "" {
		return nil
	}
	s.midLine = !strings.HasSuffix(delta, "\n")
	_, err := io.WriteString(s.out, delta)
	return err
}

// waits says, where nothing comes for a while, that there is something to wait for. stop
// takes that away.
func (s *chatShow) waits() (stop func()) {
	if s.json || s.midLine {
		return func() {}
	}
	return s.say.slowly("working; Ctrl-C stops it")
}

// end ends the line of an answer.
func (s *chatShow) end() error {
	if !s.midLine || s.json {
		return nil
	}
	s.midLine = false
	_, err := io.WriteString(s.out, "\n")
	return err
}

// mostLine is how many bytes of arguments and answers are shown off a terminal.
const mostLine = 400

// line is about a tool.
func (s *chatShow) line(format, name, text string) error {
	if err := s.end(); err != nil {
		return err
	}
	most := min(mostLine, max(20, widthOf(s.say.w)-len(name)-len("hutch:  answers ")-1))
	s.say.dim(s.colour, format, name, abi.Cut(oneLine(text), most))
	return nil
}

func (s *chatShow) warning(value json.RawMessage) error {
	var w struct{ Message string }
	if json.Unmarshal(value, &w) != nil || w.Message == "" {
		return nil
	}
	if err := s.end(); err != nil {
		return err
	}
	s.say.line("warning: %s", w.Message)
	return nil
}

// recall shows the end of a thread that somebody comes back to.
func (s *chatShow) recall(h agui.History) {
	if s.json {
		return
	}
	for _, m := range h.Messages {
		text := m.Content.String()
		switch {
		case text == "":
		case m.Role == chat.User:
			s.say.text("> " + text + "\n")
		case m.Role == chat.Assistant:
			s.say.text(text + "\n")
		}
	}
}
