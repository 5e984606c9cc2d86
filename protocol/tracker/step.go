package tracker

import "time"

// StepOut is a line of a task's checklist. Its index is its place from 0 on.
type StepOut struct {
	ID     string     `json:"id"`
	Index  int        `json:"index"`
	Title  string     `json:"title"`
	Done   bool       `json:"done"`
	DoneAt *time.Time `json:"done_at"`
	DoneBy *MemberRef `json:"done_by"`
}

// AddStep adds a step, behind the others unless an index says where.
type AddStep struct {
	Title          string `json:"title"`
	Index          *int   `json:"index,omitempty"`
	IdempotencyKey string `json:"-"`
}

// UpdateStep changes a step. Without any field it completes it.
type UpdateStep struct {
	Title Field[string] `json:"title,omitzero"`
	Done  Field[bool]   `json:"done,omitzero"`
	Index Field[int]    `json:"index,omitzero"` // where it goes
}

// Empty reports whether it changes no field, and so completes.
func (u UpdateStep) Empty() bool { return !u.Title.Set && !u.Done.Set && !u.Index.Set }
