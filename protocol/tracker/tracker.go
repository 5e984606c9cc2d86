// Package tracker says what a tracker and its agents say to each other: the types of both
// ends, and what a board can be asked.
//
// The types are those of the REST interface and of the frames on the socket; what they
// mean is a [Service]'s. Names come out in one spelling and are taken in every spelling
// that has been used for them. Nothing here connects to anything.
package tracker

import (
	"encoding/json"
	"time"
)

// Limits of what is sent, in bytes where nothing else is said.
const (
	MaxTitle       = 500
	MaxDescription = 64 << 10
	MaxMessage     = 64 << 10
	MaxReason      = 4 << 10
	MaxName        = 200
	MaxSlug        = 64
	MaxStatusText  = 64 // characters
	MaxLabel       = 64
	MaxLabels      = 50
	MaxMentions    = 50
	MaxBlockers    = 100
	MaxSteps       = 500 // of a task
	MaxFile        = 10 << 20
	MaxFileBody    = MaxFile*4/3 + 64<<10 // of a request with one, in base64
	MaxFilename    = 255
	MaxKey         = 128 // an idempotency key or a client_msg_id
	MaxPage        = 200 // items of a page
	DefaultPage    = 50
	MaxCurrent     = 50 // tasks that a heartbeat may name
	MaxRef         = 128
)

// Page is a page of a list.
type Page[T any] struct {
	Items []T `json:"items"`
	// NextCursor asks for what follows; empty on the last page.
	NextCursor string `json:"next_cursor,omitempty"`
}

// Paging asks for a page: at most Limit items (0: [DefaultPage], at most [MaxPage]) behind
// the cursor of the page before, which is opaque and empty for the first.
type Paging struct {
	Limit  int
	Cursor string
}

// A Field is a member of a partial update, of which there are three kinds: one that was
// left out, null, and a value. Its zero value was left out.
type Field[T any] struct {
	Set   bool // it was given, maybe as null
	Null  bool
	Value T
}

// Some is a field with a value.
func Some[T any](v T) Field[T] { return Field[T]{Set: true, Value: v} }

// Null is a field that is given as null.
func Null[T any]() Field[T] { return Field[T]{Set: true, Null: true} }

// IsZero reports whether it was left out; the tag omitzero asks.
func (f Field[T]) IsZero() bool { return !f.Set }

// Has reports whether it has a value.
func (f Field[T]) Has() bool { return f.Set && !f.Null }

// MarshalJSON writes the value or null.
func (f Field[T]) MarshalJSON() ([]byte, error) {
	if !f.Has() {
		return []byte("null"), nil
	}
	return json.Marshal(f.Value)
}

// UnmarshalJSON reads a value or null.
func (f *Field[T]) UnmarshalJSON(raw []byte) error {
	*f = Field[T]{Set: true, Null: string(raw) == "null"}
	if f.Null {
		return nil
	}
	return json.Unmarshal(raw, &f.Value)
}

// MemberRef is a member in short.
type MemberRef struct {
	Slug string `json:"slug"`
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"`
	// Presence is that of the assignee of a task, so that one whose holder has left is seen.
	Presence Presence `json:"presence,omitempty"`
}

// ProjectRef is a project in short.
type ProjectRef struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
}

// Activity (one entry of the activity log) says who changed what and when. It is never
// changed.
type Activity struct {
	ID     string    `json:"id"`
	TaskID string    `json:"task_id,omitempty"`
	Actor  MemberRef `json:"actor"`
	// Action is created, updated, status_changed, assigned, unassigned, taken, released,
	// rejected, deleted, watched, unwatched, blocked, unblocked, step_added,
	// step_updated, step_deleted, commented or file_added.
	Action    string            `json:"action"`
	Changes   map[string]Change `json:"changes,omitempty"`
	CreatedAt time.Time         `json:"created_at"`
}

// Change is what became of one field; nil is none.
type Change struct {
	From any `json:"from"`
	To   any `json:"to"`
}
