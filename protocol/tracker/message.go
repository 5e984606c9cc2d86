package tracker

import "time"

// MessageOut is the one kind of message there is: with a chat's id it stands in a chat, with
// a task's it is a comment on that task, and with a parent's it answers another.
type MessageOut struct {
	ID         string    `json:"id"`
	ChatID     *string   `json:"chat_id,omitempty"`
	TaskID     *string   `json:"task_id,omitempty"`
	ParentID   *string   `json:"parent_id,omitempty"`
	Author     MemberRef `json:"author"`
	AuthorSlug string    `json:"author_slug"`
	Content    string    `json:"content"`
	Mentions   []string  `json:"mentions"` // slugs, and "all"
	// UnresolvedMentions are slugs that nobody has. Only who sends is told.
	UnresolvedMentions []string        `json:"unresolved_mentions,omitempty"`
	Attachments        []AttachmentOut `json:"attachments"`
	// System: the board wrote it in the author's name, of something that the author did.
	System    bool      `json:"system,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// All is the mention of everybody.
const All = "all"

// SendMessage sends a message to a chat or to a task: one of them, and not both.
type SendMessage struct {
	ChatID  string `json:"chat_id,omitempty"`
	TaskID  string `json:"task_id,omitempty"`
	Content string `json:"content"`
	// Mentions, if not nil, win over those that the content spells.
	Mentions []string `json:"mentions,omitempty"`
	// IdempotencyKey makes a repeated call return the first one's message; on the socket it
	// is the client_msg_id.
	IdempotencyKey string `json:"-"`
}

// Reply answers a message where that stands.
type Reply struct {
	Content        string   `json:"content"`
	Mentions       []string `json:"mentions,omitempty"`
	IdempotencyKey string   `json:"-"`
}

// MessageQuery asks for messages of a chat, of a task, or of a thread: one of them. It wants
// the newest, which come oldest first; its cursor asks for older ones.
type MessageQuery struct {
	ChatID, TaskID, ParentID string
	Paging
}

// ChatOut is a chat.
type ChatOut struct {
	ID      string      `json:"id"`
	Slug    string      `json:"slug"`
	Name    string      `json:"name"`
	Project *ProjectRef `json:"project,omitempty"`
	// Members are slugs, sorted. A chat without any is open to everybody.
	Members   []string  `json:"members"`
	Archived  bool      `json:"archived"`
	CreatedAt time.Time `json:"created_at"`
}

// CreateChat makes a chat.
type CreateChat struct {
	Slug           string   `json:"slug"`
	Name           string   `json:"name,omitempty"` // default the slug
	Project        string   `json:"project_slug,omitempty"`
	Members        []string `json:"members,omitempty"`
	IdempotencyKey string   `json:"-"`
}

// UpdateChat changes the fields that are given.
type UpdateChat struct {
	Name     Field[string]   `json:"name,omitzero"`
	Members  Field[[]string] `json:"members,omitzero"`
	Archived Field[bool]     `json:"archived,omitzero"`
}

// ChatQuery asks for chats that the caller may read.
type ChatQuery struct {
	Project  string
	Archived bool // those too
	Paging
}
