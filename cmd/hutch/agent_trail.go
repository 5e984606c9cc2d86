package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/event"
)

// What a line of a trail is about.
const (
	trailConnected = "connected"
	trailLost      = "lost"
	trailTask      = "task" // something happens to it in the agent's inbox
	trailSaid      = "said"
	trailCalled    = "called"
	trailAnswered  = "answered"
	trailWaiting   = "waiting"
)

// trailLine is one line of the trail of an agent, as a program reads it.
type trailLine struct {
	Time  time.Time `json:"time"`
	Agent string    `json:"agent"`
	What  string    `json:"what"`
	// Task is the key of the task that it is about, and Title what that is called.
	Task  string `json:"task,omitempty"`
	Title string `json:"title,omitempty"`
	// Thread and Run are where the rest can be read.
	Thread string `json:"thread,omitempty"`
	Run    string `json:"run,omitempty"`
	Tool   string `json:"tool,omitempty"`
	// Text is what was said, or called with, or answered, or why.
	Text string `json:"text,omitempty"`
}

// A trail shows what agents do: a line for each thing. It may be used from any goroutine;
// nil shows nothing.
type trail struct {
	mu   sync.Mutex
	out  io.Writer
	json bool
	now  func() time.Time
}

// tell shows a line.
func (t *trail) tell(l trailLine) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l.Time = t.now()
	text := l.String()
	if t.json {
		line, err := json.Marshal(l)
		if err != nil {
			return // it has only texts
		}
		text = string(line)
	}
	if isTerminal(t.out) {
		text = printable(text)
	}
	_, _ = io.WriteString(t.out, text+"\n") // there is nowhere left to say that it is closed
}

// String is the line as a person reads it.
func (l trailLine) String() string {
	words := withoutEmpty(l.Time.Local().Format(time.TimeOnly), l.Agent, oneLine(l.Task), oneLine(l.verb()), abi.Cut(oneLine(l.Text), mostLine))
	return strings.Join(words, "  ")
}

// verb says what happened.
func (l trailLine) verb() string {
	switch l.What {
	case trailCalled:
		return l.Tool
	case trailAnswered:
		return l.Tool + " answers"
	}
	if l.What == trailTask {
		return "" // the text says it
	}
	return l.What
}

// turn returns what is to be told the events of a turn.
func (t *trail) turn(about trailLine) func(event.Event) {
	if t == nil {
		return nil
	}
	calls, text := map[string]*shownCall{}, &strings.Builder{}
	return func(e event.Event) {
		l := about
		switch e := e.(type) {
		case event.TextMessageContent:
			text.WriteString(e.Delta)
			return
		case event.TextMessageEnd:
			l.What, l.Text = trailSaid, text.String()
			text.Reset()
		case event.ToolCallStart:
			calls[e.ToolCallID] = &shownCall{name: e.ToolCallName}
			return
		case event.ToolCallArgs:
			if c := calls[e.ToolCallID]; c != nil {
				c.args.WriteString(e.Delta)
			}
			return
		case event.ToolCallEnd:
			if c := calls[e.ToolCallID]; c != nil {
				l.What, l.Tool, l.Text = trailCalled, c.name, c.args.String()
			}
		case event.ToolCallResult:
			l.What, l.Tool, l.Text = trailAnswered, "tool", e.Content.String()
			if c := calls[e.ToolCallID]; c != nil {
				l.Tool = c.name
			}
		default:
			return
		}
		if l.What != "" && (l.Text != "" || l.What != trailSaid) {
			t.tell(l)
		}
	}
}

// waitsFor says what a turn waits for that ended with questions to a person.
func waitsFor(asks []event.Interrupt) string {
	texts := make([]string, len(asks))
	for i, a := range asks {
		texts[i] = abi.OneLine(a.Message, 300)
	}
	return fmt.Sprintf("a person has to decide: %s", strings.Join(texts, "; "))
}
