package tracker

import "time"

// ProjectOut is a project.
type ProjectOut struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
	// Key stands before the numbers of its tasks.
	Key         string    `json:"key"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Archived    bool      `json:"archived"`
	CreatedAt   time.Time `json:"created_at"`
}

// CreateProject makes a project.
type CreateProject struct {
	Slug        string `json:"slug"`
	Name        string `json:"name,omitempty"` // default the slug
	Description string `json:"description,omitempty"`
	// Key is made of the slug if it is empty: "team-board" is TB.
	Key            string `json:"key,omitempty"`
	IdempotencyKey string `json:"-"`
}

// UpdateProject changes the fields that are given.
type UpdateProject struct {
	Name        Field[string] `json:"name,omitzero"`
	Description Field[string] `json:"description,omitzero"`
	Archived    Field[bool]   `json:"archived,omitzero"`
}

// ProjectQuery asks for projects by slug.
type ProjectQuery struct {
	Archived bool // those too
	Paging
}
