package tracker

import (
	"encoding/json"
	"time"
)

// The names of events, as they are emitted.
const (
	EventTaskAssigned  = "task.assigned"
	EventTaskTaken     = "task.taken"
	EventTaskStatus    = "task.status_changed"
	EventTaskComment   = "task.comment_added"
	EventTaskRejected  = "task.rejected"
	EventChatMessage   = "chat.message"
	EventAgentStatus   = "agent.status_changed"
	EventResync        = "resync"
	eventMessageNew    = "message.new" // of either kind, in the second set of names
	eventTaskStatusOld = "task.status"
	eventCommentOld    = "task.comment"
)

// EventName is the name that stands on the wire in the set of names "v2", in which there is
// one for every message.
func EventName(set, name string) string {
	if set == "v2" && (name == EventChatMessage || name == EventTaskComment) {
		return eventMessageNew
	}
	return name
}

// CanonicalEvent takes an event's name in any of its spellings. What message.new is, its
// data says.
func CanonicalEvent(name string, data json.RawMessage) string {
	switch name {
	case eventTaskStatusOld:
		return EventTaskStatus
	case eventCommentOld:
		return EventTaskComment
	case eventMessageNew:
		var where struct {
			TaskID string `json:"task_id"`
		}
		if json.Unmarshal(data, &where) == nil && where.TaskID != "" {
			return EventTaskComment
		}
		return EventChatMessage
	}
	return name
}

// TaskAssigned is the data of task.assigned.
type TaskAssigned struct {
	Task  TaskOut   `json:"task"`
	Actor MemberRef `json:"actor"`
	// Previous is whose it was.
	Previous string `json:"previous_assignee_slug,omitempty"`
}

// TaskTaken is the data of task.taken.
type TaskTaken struct {
	TaskID    string `json:"task_id"`
	Key       string `json:"key"`
	AgentSlug string `json:"agent_slug"`
}

// TaskStatus is the data of task.status_changed.
type TaskStatus struct {
	TaskID       string    `json:"task_id"`
	Key          string    `json:"key"`
	Title        string    `json:"title"`
	From         Status    `json:"from"`
	To           Status    `json:"to"`
	AssigneeSlug string    `json:"assignee_slug,omitempty"`
	Actor        MemberRef `json:"actor"`
	// Unblocked are the tasks that wait for nothing any more since this.
	Unblocked []Unblocked `json:"unblocked,omitempty"`
}

// Unblocked is a task that waits for nothing any more.
type Unblocked struct {
	TaskID       string `json:"task_id"`
	Key          string `json:"key"`
	AssigneeSlug string `json:"assignee_slug,omitempty"`
	// CancelledBlockers are keys: what it waited for there will not come.
	CancelledBlockers []string `json:"cancelled_blockers,omitempty"`
}

// TaskComment is the data of task.comment_added.
type TaskComment struct {
	MessageOut
	MessageID string    `json:"message_id"`
	Task      TaskShort `json:"task"`
}

// TaskShort is a task in short.
type TaskShort struct {
	ID           string `json:"id"`
	Key          string `json:"key"`
	Title        string `json:"title"`
	Status       Status `json:"status"`
	AssigneeSlug string `json:"assignee_slug,omitempty"`
}

// ChatMessage is the data of chat.message.
type ChatMessage struct {
	MessageOut
	MessageID string `json:"message_id"`
}

// TaskRejected is the data of task.rejected.
type TaskRejected struct {
	TaskID    string `json:"task_id"`
	Key       string `json:"key"`
	AgentSlug string `json:"agent_slug"`
	Reason    string `json:"reason"`
}

// AgentStatus is the data of agent.status_changed.
type AgentStatus struct {
	AgentSlug    string   `json:"agent_slug"`
	Status       string   `json:"status"`
	Activity     string   `json:"activity"`
	Presence     Presence `json:"presence"`
	CurrentTasks []string `json:"current_tasks"`
}

// Resync is the data of resync: events were dropped, and the truth is to be read again.
type Resync struct {
	Dropped int64  `json:"dropped"` // how many, 0 if nobody knows
	Reason  string `json:"reason"`  // overflow, age or unknown_cursor
}

// Event is one event in the queue of one agent. Its id is the same at every delivery; its
// seq grows by queue.
type Event struct {
	ID   string          `json:"id"`
	Name string          `json:"event"`
	Data json.RawMessage `json:"data"`
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"ts"`
	// Tries is how often it was sent before.
	Tries int `json:"-"`
	// Parked: it was sent too often, and is not sent any more.
	Parked bool `json:"-"`
}
