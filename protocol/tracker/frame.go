package tracker

import (
	"encoding/json"
	"time"
)

// The types of frames.
const (
	FrameAuth      = "auth"       // agent to tracker: first of all
	FrameHeartbeat = "heartbeat"  // agent to tracker
	FrameAck       = "ack"        // agent to tracker
	FrameChatSend  = "chat.send"  // agent to tracker
	FrameAuthOK    = "auth.ok"    // tracker to agent
	FrameAuthError = "auth.error" // tracker to agent
	FrameEvent     = "event"      // tracker to agent
	FrameChatSent  = "chat.sent"  // tracker to agent
	FrameError     = "error"      // tracker to agent
)

// Why a socket is closed. After [CloseAuth] and [CloseSuperseded] a client does not come
// back by itself.
const (
	CloseSuperseded  = 4001 // another connection of the same agent came
	CloseAuth        = 4401
	CloseAuthTimeout = 4408
	CloseSlow        = 4429
)

// The times of a socket.
const (
	AuthWithin     = 10 * time.Second
	HeartbeatEvery = 15 * time.Second
	OfflineAfter   = 45 * time.Second
	AckWithin      = 30 * time.Second // then an event is sent again
	MaxTries       = 10               // then it is parked
	QueueMost      = 10_000           // events of an agent
	QueueAge       = 7 * 24 * time.Hour
)

// FrameType is what every frame has.
type FrameType struct {
	Type string `json:"type"`
}

// Auth says who connects.
type Auth struct {
	Type   string    `json:"type"`
	Token  string    `json:"token,omitempty"` // empty if the upgrade had it
	Agent  AuthAgent `json:"agent"`
	Resume *Resume   `json:"resume,omitempty"`
}

// AuthAgent is what an agent says of itself. The slug must be the token's.
type AuthAgent struct {
	Name         string   `json:"name"`
	Slug         string   `json:"slug"`
	Capabilities []string `json:"capabilities"`
}

// Resume asks for what came behind a seq.
type Resume struct {
	LastSeq int64 `json:"last_seq"`
}

// AuthOK lets an agent in.
type AuthOK struct {
	Type    string `json:"type"`
	AgentID string `json:"agent_id"`
	// HeartbeatIntervalMS is how often a heartbeat is expected.
	HeartbeatIntervalMS int64 `json:"heartbeat_interval_ms,omitempty"`
	// Seq is that of the last event in the agent's queue, 0 for none ever.
	Seq int64 `json:"seq"`
}

// AuthError lets nobody in.
type AuthError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Heartbeat says what an agent does.
type Heartbeat struct {
	Type         string   `json:"type"`
	Status       string   `json:"status"` // idle or busy
	CurrentTasks []string `json:"current_tasks"`
}

// Ack says that an event was durably accepted.
type Ack struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// ChatSend sends a message to a chat.
type ChatSend struct {
	Type        string   `json:"type"`
	ChatID      string   `json:"chat_id"`
	Content     string   `json:"content"`
	Mentions    []string `json:"mentions,omitempty"`
	ClientMsgID string   `json:"client_msg_id,omitempty"`
}

// ChatSent answers a [ChatSend].
type ChatSent struct {
	Type        string `json:"type"`
	ClientMsgID string `json:"client_msg_id,omitempty"`
	MessageID   string `json:"message_id"`
}

// ErrorFrame refuses a frame.
type ErrorFrame struct {
	Type        string `json:"type"`
	ClientMsgID string `json:"client_msg_id,omitempty"`
	Error
}

// EventFrame carries an event.
type EventFrame struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
	Seq   int64           `json:"seq"`
	TS    time.Time       `json:"ts"`
	// Redelivery is how often it was sent before; left out at the first time.
	Redelivery int `json:"redelivery,omitempty"`
}

// Frame is the frame of an event, under the names of a set.
func (e Event) Frame(set string) EventFrame {
	return EventFrame{Type: FrameEvent, ID: e.ID, Event: EventName(set, e.Name), Data: e.Data, Seq: e.Seq, TS: e.At, Redelivery: e.Tries}
}
