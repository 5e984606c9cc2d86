package tracker

import "time"

// Kind is what a member is.
type Kind string

// The kinds.
const (
	Human Kind = "human"
	Agent Kind = "agent"
)

// Presence says whether a member is connected.
type Presence string

// The presences.
const (
	Online  Presence = "online"
	Offline Presence = "offline"
)

// What a heartbeat says that an agent does.
const (
	Idle = "idle"
	Busy = "busy"
)

// MemberOut is a member.
type MemberOut struct {
	ID           string   `json:"id"`
	Slug         string   `json:"slug"`
	Name         string   `json:"name"`
	Kind         Kind     `json:"kind"`
	Capabilities []string `json:"capabilities"`
	// Status is free text, the member's own.
	Status       string   `json:"status"`
	Activity     string   `json:"activity"` // idle or busy, as the heartbeat says
	Presence     Presence `json:"presence"`
	CurrentTasks []string `json:"current_tasks"` // as the heartbeat says
	// Projects are slugs. A member without any belongs to all.
	Projects  []string   `json:"projects"`
	Archived  bool       `json:"archived"`
	SeenAt    *time.Time `json:"seen_at,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
}

// CreateMember makes a member.
type CreateMember struct {
	Slug           string   `json:"slug"`
	Name           string   `json:"name,omitempty"` // default the slug
	Kind           Kind     `json:"kind,omitempty"` // default agent
	Capabilities   []string `json:"capabilities,omitempty"`
	Projects       []string `json:"projects,omitempty"`
	IdempotencyKey string   `json:"-"`
}

// UpdateMember changes the fields that are given. Of oneself only the status can be changed.
type UpdateMember struct {
	Name         Field[string]   `json:"name,omitzero"`
	Capabilities Field[[]string] `json:"capabilities,omitzero"`
	Projects     Field[[]string] `json:"projects,omitzero"`
	Archived     Field[bool]     `json:"archived,omitzero"`
	Status       Field[string]   `json:"status,omitzero"`
}

// MyStatus changes the caller's status, and is the answer to that.
type MyStatus struct {
	Status string `json:"status"`
}

// MemberQuery asks for members by slug.
type MemberQuery struct {
	Project  string
	Kind     string
	Archived bool // those too
	Paging
}
