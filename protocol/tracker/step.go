package tracker

import (
	"encoding/json"
	"time"
)

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

// StepRef names a step of a task by its id or by its index, as JSON a string or a number.
type StepRef string

// UnmarshalJSON takes "uuid", "2" and 2.
func (r *StepRef) UnmarshalJSON(raw []byte) error {
	var n json.Number
	if json.Unmarshal(raw, &n) == nil && len(raw) > 0 && raw[0] != '"' {
		*r = StepRef(n.String())
		return nil
	}
	return json.Unmarshal(raw, (*string)(r))
}
