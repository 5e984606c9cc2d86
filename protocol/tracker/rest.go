package tracker

import (
	"encoding/json"
	"time"
)

// Beat is the body of a heartbeat over REST.
type Beat struct {
	Status       string   `json:"status,omitempty"` // idle or busy
	CurrentTasks []string `json:"current_tasks,omitempty"`
}

// AckEvents is the body of an acknowledgement over REST.
type AckEvents struct {
	IDs []string `json:"ids"`
}

// EventOut is an event over REST.
type EventOut struct {
	ID    string          `json:"id"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
	Seq   int64           `json:"seq"`
	TS    time.Time       `json:"ts"`
	// Redelivery is how often it was sent before.
	Redelivery int `json:"redelivery,omitempty"`
}
