// Package event says what happens: the events of a run.
//
// They are those of AG-UI 1.0 (specification, "Events"), which is what the engine
// speaks; a face only writes them down. The package does no I/O. [Guard] stands
// between whoever makes events and whoever writes them, and keeps their order.
package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Version is the version of AG-UI that the events are of.
const Version = "1.0"

// Type is the member type of an event.
type Type string

// The types of events. Those that AG-UI has retired are not among them.
const (
	TypeRunStarted              Type = "RUN_STARTED"
	TypeRunFinished             Type = "RUN_FINISHED"
	TypeRunError                Type = "RUN_ERROR"
	TypeStepStarted             Type = "STEP_STARTED"
	TypeStepFinished            Type = "STEP_FINISHED"
	TypeTextMessageStart        Type = "TEXT_MESSAGE_START"
	TypeTextMessageContent      Type = "TEXT_MESSAGE_CONTENT"
	TypeTextMessageEnd          Type = "TEXT_MESSAGE_END"
	TypeTextMessageChunk        Type = "TEXT_MESSAGE_CHUNK"
	TypeToolCallStart           Type = "TOOL_CALL_START"
	TypeToolCallArgs            Type = "TOOL_CALL_ARGS"
	TypeToolCallEnd             Type = "TOOL_CALL_END"
	TypeToolCallChunk           Type = "TOOL_CALL_CHUNK"
	TypeToolCallResult          Type = "TOOL_CALL_RESULT"
	TypeStateSnapshot           Type = "STATE_SNAPSHOT"
	TypeStateDelta              Type = "STATE_DELTA"
	TypeMessagesSnapshot        Type = "MESSAGES_SNAPSHOT"
	TypeActivitySnapshot        Type = "ACTIVITY_SNAPSHOT"
	TypeActivityDelta           Type = "ACTIVITY_DELTA"
	TypeReasoningStart          Type = "REASONING_START"
	TypeReasoningMessageStart   Type = "REASONING_MESSAGE_START"
	TypeReasoningMessageContent Type = "REASONING_MESSAGE_CONTENT"
	TypeReasoningMessageEnd     Type = "REASONING_MESSAGE_END"
	TypeReasoningMessageChunk   Type = "REASONING_MESSAGE_CHUNK"
	TypeReasoningEnd            Type = "REASONING_END"
	TypeReasoningEncryptedValue Type = "REASONING_ENCRYPTED_VALUE"
	TypeSubagentStarted         Type = "SUBAGENT_STARTED"
	TypeSubagentFinished        Type = "SUBAGENT_FINISHED"
	TypeSubagentError           Type = "SUBAGENT_ERROR"
	TypeRaw                     Type = "RAW"
	TypeCustom                  Type = "CUSTOM"
)

// Event is one of the 31 structs of this package, by value.
//
// The tag "is" of a field says what AG-UI wants of the member: required, id (required
// and not empty), object, null (null is a value), signed or one=a|b. Both directions
// go by it.
type Event interface {
	Type() Type
	closed()
}

// Base is what every event may carry.
type Base struct {
	// Timestamp is in milliseconds since 1970; 0 is none.
	Timestamp int64 `json:"timestamp,omitempty" is:"signed"`
	// RawEvent is what a provider sent that the event was made of.
	RawEvent json.RawMessage `json:"rawEvent,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty" is:"object"`
}

func (Base) closed() {}

// Owned is a [Base] with whose event it is.
type Owned struct {
	Base
	// SubagentRunID is the subagent's run; empty is the agent itself.
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// blanks has every event once.
func blanks() []Event {
	return []Event{
		TextMessageContent{}, ToolCallArgs{}, ReasoningMessageContent{}, // the most frequent ones
		RunStarted{}, RunFinished{}, RunError{}, StepStarted{}, StepFinished{},
		TextMessageStart{}, TextMessageEnd{}, TextMessageChunk{},
		ToolCallStart{}, ToolCallEnd{}, ToolCallChunk{}, ToolCallResult{},
		StateSnapshot{}, StateDelta{}, MessagesSnapshot{}, ActivitySnapshot{}, ActivityDelta{},
		ReasoningStart{}, ReasoningMessageStart{}, ReasoningMessageEnd{}, ReasoningMessageChunk{},
		ReasoningEnd{}, ReasoningEncryptedValue{},
		SubagentStarted{}, SubagentFinished{}, SubagentError{}, Raw{}, Custom{},
	}
}

// ErrUnknownType is what [Decode] returns for a type that AG-UI 1.0 does not have.
// A reader skips such an event.
var ErrUnknownType = errors.New("unknown type of event")

// Encode writes an event as one JSON object without line breaks, its type first. It
// returns a [FieldError] if AG-UI would not allow it.
func Encode(e Event) ([]byte, error) {
	if err := Validate(e); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	fmt.Fprintf(&buf, `{"type":%q`, e.Type())
	start := buf.Len()
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(onWire(e)); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Type(), err)
	}
	// What begins with a brace goes on with a comma instead, or ends: a chunk may have
	// no member at all.
	out := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if len(out) == start+len("{}") {
		return append(out[:start], '}'), nil
	}
	out[start] = ','
	return out, nil
}

// Decode reads an event. Members that AG-UI does not name are dropped; of those that
// it does, a wrong type, a null where there is none and one that is missing are a
// [FieldError].
func Decode(raw []byte) (Event, error) {
	r := reader{}
	members, fault := r.members("", raw)
	if fault != nil {
		return nil, fault
	}
	var name Type
	if fault := r.value("type", members["type"], reflect.ValueOf(&name).Elem(), rule{required: true, filled: true}); fault != nil {
		return nil, fault
	}
	for _, blank := range blanks() {
		if blank.Type() != name {
			continue
		}
		into := reflect.New(reflect.TypeOf(blank)).Elem()
		if fault := r.fields("", members, into); fault != nil {
			return nil, fmt.Errorf("%s: %w", name, fault)
		}
		return into.Interface().(Event), nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknownType, shown(string(name)))
}
