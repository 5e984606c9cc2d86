package tracker

import (
	"slices"
	"strings"
	"time"
)

// Status is where a task is in its life.
type Status string

// The statuses, in the order of a life.
const (
	Backlog    Status = "backlog"
	Todo       Status = "todo"
	InProgress Status = "in_progress"
	InReview   Status = "in_review"
	Done       Status = "done"
	Cancelled  Status = "cancelled"
)

// Statuses returns all of them.
func Statuses() []Status { return []Status{Backlog, Todo, InProgress, InReview, Done, Cancelled} }

// ParseStatus takes a status in any of its spellings: review and inreview are in_review,
// inprogress is in_progress. Another one is an [Error] that lists them.
func ParseStatus(text string) (Status, error) {
	switch strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(text)) {
	case "review", "inreview":
		return InReview, nil
	case "inprogress":
		return InProgress, nil
	case "canceled":
		return Cancelled, nil
	}
	return oneOf("status", Status(strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(text))), Statuses())
}

// Closed reports whether a task of that status no longer blocks others.
func (s Status) Closed() bool { return s == Done || s == Cancelled }

// Types returns what a task can be.
func Types() []string { return []string{"task", "bug", "feature", "epic", "chore"} }

// Priorities returns how urgent a task can be.
func Priorities() []string { return []string{"low", "medium", "high", "urgent"} }

// ParseType takes a type; empty is task.
func ParseType(text string) (string, error) {
	if text == "" {
		return "task", nil
	}
	return oneOf("type", strings.ToLower(text), Types())
}

// ParsePriority takes a priority; empty is medium.
func ParsePriority(text string) (string, error) {
	if text == "" {
		return "medium", nil
	}
	return oneOf("priority", strings.ToLower(text), Priorities())
}

// oneOf refuses a value that is not in a vocabulary, and says what is.
func oneOf[T ~string](field string, value T, all []T) (T, error) {
	if slices.Contains(all, value) {
		return value, nil
	}
	return "", &Error{
		Code: CodeInvalid, Message: "unknown " + field + " " + Quote(string(value)),
		Details: map[string]any{"field": field, "allowed": all},
		Hint:    "use one of: " + join(all),
	}
}

func join[T ~string](all []T) string {
	parts := make([]string, len(all))
	for i, s := range all {
		parts[i] = string(s)
	}
	return strings.Join(parts, ", ")
}

// TaskOut is a task.
type TaskOut struct {
	ID string `json:"id"`
	// Key is the project's key and the number, TE-15. It never changes.
	Key          string     `json:"key"`
	Number       int64      `json:"number"`
	Project      ProjectRef `json:"project"`
	ParentID     *string    `json:"parent_id"`
	Title        string     `json:"title"`
	Description  string     `json:"description"`
	Type         string     `json:"type"`
	Priority     string     `json:"priority"`
	Status       Status     `json:"status"`
	Labels       []string   `json:"labels"` // sorted
	Assignee     *MemberRef `json:"assignee"`
	AssigneeSlug *string    `json:"assignee_slug"`
	Creator      MemberRef  `json:"creator"`
	Watchers     []string   `json:"watchers"`   // slugs, sorted
	BlockedBy    []string   `json:"blocked_by"` // keys
	// Blocked: one of those is neither done nor cancelled.
	Blocked    bool      `json:"blocked"`
	RejectedBy []string  `json:"rejected_by"` // slugs
	StepsTotal int       `json:"steps_total"`
	StepsDone  int       `json:"steps_done"`
	Version    int64     `json:"version"` // grows with each change of the task
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// TaskQuery asks for tasks. What is given must all hold; the zero value asks for all,
// the newest first.
type TaskQuery struct {
	Project  string   // a project's id or slug
	Statuses []string // any of them
	// Assignee is a slug, "me" for the caller, or "none" for tasks of nobody.
	Assignee string
	Labels   []string // all of them
	Type     string
	Priority string
	Parent   string // a task
	Creator  string // a slug
	Watcher  string // a slug
	Text     string // in title, description or key, in any case
	// Ready asks for what can be begun: status todo, not blocked.
	Ready bool
	Paging
}

// CreateTask makes a task. Only the project and the title are required.
type CreateTask struct {
	Project      string   `json:"project_slug"`
	Title        string   `json:"title"`
	Description  string   `json:"description,omitempty"`
	Type         string   `json:"type,omitempty"`     // default task
	Priority     string   `json:"priority,omitempty"` // default medium
	Status       string   `json:"status,omitempty"`   // backlog or todo, the default
	AssigneeSlug string   `json:"assignee_slug,omitempty"`
	ParentID     string   `json:"parent_id,omitempty"`
	Labels       []string `json:"labels,omitempty"`
	BlockedBy    []string `json:"blocked_by,omitempty"`
	// IdempotencyKey makes a repeated call return what the first one made.
	IdempotencyKey string `json:"-"`
}

// UpdateTask changes the fields that are given.
type UpdateTask struct {
	Title        Field[string]   `json:"title,omitzero"`
	Description  Field[string]   `json:"description,omitzero"`
	Type         Field[string]   `json:"type,omitzero"`
	Priority     Field[string]   `json:"priority,omitzero"`
	Status       Field[string]   `json:"status,omitzero"`
	AssigneeSlug Field[string]   `json:"assignee_slug,omitzero"` // null or "": nobody
	ParentID     Field[string]   `json:"parent_id,omitzero"`     // null or "": none
	Labels       Field[[]string] `json:"labels,omitzero"`
	BlockedBy    Field[[]string] `json:"blocked_by,omitzero"`
	// Force allows a move that the state machine does not; it needs the scope tasks:force.
	Force bool `json:"force,omitempty"`
	// Version, if not 0, is what the task's must be, or [CodeVersion]; IfMatch likewise,
	// or [CodePrecondition].
	Version int64 `json:"version,omitempty"`
	IfMatch int64 `json:"-"`
}

// TakeTask takes a task for the agent, the caller if it is empty.
type TakeTask struct {
	AgentSlug      string `json:"agent_slug,omitempty"`
	IdempotencyKey string `json:"-"`
}

// RejectTask gives a task back.
type RejectTask struct {
	Reason         string `json:"reason"`
	IdempotencyKey string `json:"-"`
}

// Rejected is the answer to a [RejectTask].
type Rejected struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason"`
}

// ReleaseTask puts a task back without an opinion of it: what was in progress becomes
// todo. Only the assignee does, or whoever may assign.
type ReleaseTask struct {
	Reason string `json:"reason,omitempty"`
}

// WatchTask names who watches, the caller if it is empty.
type WatchTask struct {
	AgentSlug string `json:"agent_slug,omitempty"`
}

// Watching is the answer to a [WatchTask].
type Watching struct {
	OK       bool     `json:"ok"`
	Watchers []string `json:"watchers"`
}

// AddDependency names a task that blocks.
type AddDependency struct {
	BlockedBy string `json:"blocked_by"`
}
