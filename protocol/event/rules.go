package event

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hutch-run/hutch/protocol/chat"
)

// next applies the rules between events to one whose shape is right, and returns it
// with whatever has to stand before it.
func (g *guard) next(e Event) ([]Event, error) {
	switch e := e.(type) {
	case TextMessageChunk:
		return g.chunked(piece{kind: message, id: e.MessageID, delta: e.Delta, owned: e.Owned, start: TextMessageStart{MessageID: e.MessageID, Role: e.Role, Name: e.Name, Owned: e.Owned}})
	case ToolCallChunk:
		if e.ToolCallID != "" && e.ToolCallName == "" && !g.continues(call, e.ToolCallID) {
			return nil, fmt.Errorf("TOOL_CALL_CHUNK: the call %s has no name", shown(e.ToolCallID))
		}
		return g.chunked(piece{kind: call, id: e.ToolCallID, delta: e.Delta, owned: e.Owned, start: ToolCallStart{ToolCallID: e.ToolCallID, ToolCallName: e.ToolCallName, ParentMessageID: e.ParentMessageID, Owned: e.Owned}})
	case ReasoningMessageChunk:
		return g.chunked(piece{kind: reasoningMessage, id: e.MessageID, delta: e.Delta, owned: e.Owned, start: ReasoningMessageStart{MessageID: e.MessageID, Role: chat.Reasoning, Owned: e.Owned}})
	case Raw, Custom, StateSnapshot, StateDelta, ActivitySnapshot, ActivityDelta, StepStarted, StepFinished:
		return g.rule(e) // goes on beside what chunks write
	}
	before := g.endChunk()
	out, err := g.rule(e)
	return append(before, out...), err
}

func (g *guard) rule(e Event) ([]Event, error) {
	switch e := e.(type) {
	case RunStarted:
		return g.start(e)
	case RunFinished:
		return g.finish(e)
	case RunError:
		out := append(g.closing(TypeRunError, nil), e)
		g.started, g.over = true, true
		return out, nil
	case StepStarted:
		return one(e, g.opens(entity{step, e.StepName, e.SubagentRunID}))
	case StepFinished:
		return one(e, g.closes(entity{step, e.StepName, e.SubagentRunID}))
	case TextMessageStart, TextMessageContent, TextMessageEnd:
		return one(e, g.text(e))
	case ToolCallStart, ToolCallArgs, ToolCallEnd, ToolCallResult:
		return one(e, g.tool(e))
	case ReasoningStart, ReasoningEnd, ReasoningMessageStart, ReasoningMessageContent, ReasoningMessageEnd, ReasoningEncryptedValue:
		return one(e, g.reasoning(e))
	case ActivitySnapshot, ActivityDelta, MessagesSnapshot:
		return one(e, g.documents(e))
	case SubagentStarted, SubagentFinished, SubagentError:
		return one(e, g.subagent(e))
	}
	return []Event{e}, nil
}

func one(e Event, err error) ([]Event, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Type(), err)
	}
	return []Event{e}, nil
}

func (g *guard) start(e RunStarted) ([]Event, error) {
	if g.o.ThreadID != "" && e.ThreadID != g.o.ThreadID || g.o.RunID != "" && e.RunID != g.o.RunID {
		return nil, fmt.Errorf("RUN_STARTED of %s in %s, asked for was %s in %s", shown(e.RunID), shown(e.ThreadID), shown(g.o.RunID), shown(g.o.ThreadID))
	}
	*g = guard{
		o: g.o, started: true, threadID: e.ThreadID, runID: e.RunID,
		owners: map[owned]string{}, answered: map[string]bool{}, subagents: map[string]bool{},
	}
	if e.Input != nil {
		g.history(e.Input.Messages)
	}
	return []Event{e}, nil
}

func (g *guard) finish(e RunFinished) ([]Event, error) {
	if e.ThreadID != g.threadID || e.RunID != g.runID {
		return nil, fmt.Errorf("RUN_FINISHED of %s in %s, the run is %s in %s", shown(e.RunID), shown(e.ThreadID), shown(g.runID), shown(g.threadID))
	}
	outcome := Outcome{Type: Success}
	if e.Outcome != nil {
		outcome = *e.Outcome
	}
	switch outcome.Type {
	case Success:
		outcome.PendingToolCallIDs = slices.DeleteFunc(slices.Clone(g.calls), func(id string) bool { return g.answered[id] })
	case Interrupted:
		ids := map[string]bool{}
		for _, i := range outcome.Interrupts {
			if ids[i.ID] {
				return nil, fmt.Errorf("RUN_FINISHED: two interrupts %s", shown(i.ID))
			}
			ids[i.ID] = true
		}
	case Cancelled:
		if e.Result != nil {
			return nil, errors.New("RUN_FINISHED: a cancelled run with a result")
		}
	}
	e.Outcome = &outcome
	out := append(g.closing(TypeRunFinished, outcome.Interrupts), e)
	g.over = true
	return out, nil
}

// closing returns what closes whatever is open before a last event of that type.
func (g *guard) closing(last Type, interrupts []Interrupt) (out []Event) {
	for _, one := range slices.Backward(g.open) {
		if last == TypeRunError && one.kind == call {
			continue
		}
		out = append(out, one.end())
	}
	for _, id := range slices.Backward(g.running) {
		var waits []string
		for _, i := range interrupts {
			if i.SubagentRunID == id {
				waits = append(waits, i.ID)
			}
		}
		if waits != nil {
			out = append(out, SubagentFinished{SubagentRunID: id, Outcome: &SubagentOutcome{Type: Suspended, InterruptIDs: waits}})
		} else {
			out = append(out, SubagentError{SubagentRunID: id, Message: "the run ended before its subagent did", Code: "incomplete"})
		}
	}
	g.open, g.running, g.chunk = nil, nil, nil
	return out
}

func (one entity) end() Event {
	switch one.kind {
	case message:
		return TextMessageEnd{MessageID: one.id}
	case call:
		return ToolCallEnd{ToolCallID: one.id}
	case span:
		return ReasoningEnd{MessageID: one.id}
	case reasoningMessage:
		return ReasoningMessageEnd{MessageID: one.id}
	}
	return StepFinished{StepName: one.id, Owned: Owned{SubagentRunID: one.owner}}
}

func (g *guard) opens(one entity) error {
	if slices.Contains(g.open, one) {
		return fmt.Errorf("the %s %s is open already", one.kind, shown(one.id))
	}
	g.open = append(g.open, one)
	return nil
}

func (g *guard) needs(one entity) error {
	if !slices.Contains(g.open, one) {
		return fmt.Errorf("no %s %s is open", one.kind, shown(one.id))
	}
	return nil
}

func (g *guard) closes(one entity) error {
	if err := g.needs(one); err != nil {
		return err
	}
	i := slices.Index(g.open, one)
	g.open = slices.Delete(g.open, i, i+1)
	return nil
}

// belongs refuses an event of a subagent about what another one opened. An event
// without a subagent goes with whatever is there. Whoever comes first is the owner.
func (g *guard) belongs(bucket, id, subagent string) error {
	owner, known := g.owners[owned{bucket, id}]
	if known && subagent != "" && subagent != owner {
		return fmt.Errorf("%s is of subagent %s, not %s", shown(id), shown(owner), shown(subagent))
	}
	if !known {
		g.owners[owned{bucket, id}] = subagent
	}
	return nil
}

// about checks whose something is, and then does with it what an event means.
func (g *guard) about(k kind, bucket, id, subagent string, do func(entity) error) error {
	if err := g.belongs(bucket, id, subagent); err != nil {
		return err
	}
	return do(entity{kind: k, id: id})
}

const (
	messages   = "message"
	calls      = "call"
	reasonings = "reasoning"
	activities = "activity"
)

func (g *guard) text(e Event) error {
	switch e := e.(type) {
	case TextMessageStart:
		return g.about(message, messages, e.MessageID, e.SubagentRunID, g.opens)
	case TextMessageContent:
		return g.about(message, messages, e.MessageID, e.SubagentRunID, g.needs)
	case TextMessageEnd:
		return g.about(message, messages, e.MessageID, e.SubagentRunID, g.closes)
	}
	return nil
}

func (g *guard) tool(e Event) error {
	switch e := e.(type) {
	case ToolCallStart:
		return g.toolStart(e)
	case ToolCallArgs:
		return g.about(call, calls, e.ToolCallID, e.SubagentRunID, g.needs)
	case ToolCallEnd:
		return g.about(call, calls, e.ToolCallID, e.SubagentRunID, g.closes)
	case ToolCallResult:
		switch {
		case slices.Contains(g.open, entity{kind: call, id: e.ToolCallID}):
			return fmt.Errorf("the call %s has not ended", shown(e.ToolCallID))
		case g.answered[e.ToolCallID]:
			return fmt.Errorf("the call %s has a result already", shown(e.ToolCallID))
		}
		g.answered[e.ToolCallID] = true
		g.owners[owned{messages, e.MessageID}] = e.SubagentRunID
	}
	return nil
}

func (g *guard) toolStart(e ToolCallStart) error {
	switch {
	case e.ParentMessageID == "":
		return fmt.Errorf("the call %s has no parentMessageId", shown(e.ToolCallID))
	case slices.Contains(g.calls, e.ToolCallID):
		return fmt.Errorf("the call %s was made already", shown(e.ToolCallID))
	}
	owner := e.SubagentRunID
	if parent, known := g.owners[owned{messages, e.ParentMessageID}]; known {
		if owner != "" && owner != parent {
			return fmt.Errorf("the call %s is of subagent %s, and its message of %s", shown(e.ToolCallID), shown(owner), shown(parent))
		}
		owner = parent
	}
	// One of an earlier run keeps its owner: a client holds it to that.
	if known, ok := g.owners[owned{calls, e.ToolCallID}]; ok && known != owner {
		return fmt.Errorf("the call %s is of subagent %s, not %s", shown(e.ToolCallID), shown(known), shown(owner))
	}
	g.owners[owned{calls, e.ToolCallID}] = owner
	g.calls = append(g.calls, e.ToolCallID)
	return g.opens(entity{kind: call, id: e.ToolCallID})
}

func (g *guard) reasoning(e Event) error {
	switch e := e.(type) {
	case ReasoningStart:
		return g.about(span, reasonings, e.MessageID, e.SubagentRunID, g.opens)
	case ReasoningEnd:
		return g.about(span, reasonings, e.MessageID, e.SubagentRunID, g.closes)
	case ReasoningMessageStart:
		return g.about(reasoningMessage, reasonings, e.MessageID, e.SubagentRunID, g.opens)
	case ReasoningMessageContent:
		return g.about(reasoningMessage, reasonings, e.MessageID, e.SubagentRunID, g.needs)
	case ReasoningMessageEnd:
		return g.about(reasoningMessage, reasonings, e.MessageID, e.SubagentRunID, g.closes)
	case ReasoningEncryptedValue:
		bucket := messages
		if e.Subtype == "tool-call" {
			bucket = calls
		} else if _, ok := g.owners[owned{messages, e.EntityID}]; !ok {
			bucket = reasonings
		}
		if _, ok := g.owners[owned{bucket, e.EntityID}]; ok {
			return g.belongs(bucket, e.EntityID, e.SubagentRunID)
		}
	}
	return nil
}

func (g *guard) documents(e Event) error {
	switch e := e.(type) {
	case ActivitySnapshot:
		key := owned{activities, e.MessageID}
		if _, ok := g.owners[key]; !ok || e.Replace == nil || *e.Replace {
			g.owners[key] = e.SubagentRunID
		}
	case ActivityDelta:
		if _, ok := g.owners[owned{activities, e.MessageID}]; ok {
			return g.belongs(activities, e.MessageID, e.SubagentRunID)
		}
	case MessagesSnapshot:
		if len(e.Messages) == 0 {
			return errors.New("no message: a client would forget them all")
		}
		g.history(e.Messages)
	}
	return nil
}

// history notes that messages, and the calls in them, are the agent's own.
func (g *guard) history(known []chat.Message) {
	for _, m := range known {
		bucket := messages
		if m.Role == chat.Reasoning {
			bucket = reasonings
		}
		g.owners[owned{bucket, m.ID}] = ""
		for _, c := range m.ToolCalls {
			g.owners[owned{calls, c.ID}] = ""
		}
	}
}

func (g *guard) subagent(e Event) error {
	var id string
	switch e := e.(type) {
	case SubagentStarted:
		if _, known := g.subagents[e.SubagentRunID]; known {
			return fmt.Errorf("the subagent %s was started already", shown(e.SubagentRunID))
		}
		if _, known := g.subagents[e.ParentSubagentRunID]; e.ParentSubagentRunID != "" && !known {
			return fmt.Errorf("its parent %s was not started", shown(e.ParentSubagentRunID))
		}
		g.subagents[e.SubagentRunID] = true
		g.running = append(g.running, e.SubagentRunID)
		return nil
	case SubagentFinished:
		id = e.SubagentRunID
	case SubagentError:
		id = e.SubagentRunID
	}
	if !g.subagents[id] {
		return fmt.Errorf("no subagent %s runs", shown(id))
	}
	g.subagents[id] = false
	g.running = slices.DeleteFunc(g.running, func(one string) bool { return one == id })
	return nil
}
