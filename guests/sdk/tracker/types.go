package tracker

import (
	"errors"
	"fmt"
	"strconv"
)

// Page is a page of a list.
type Page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor"`
}

// Paging are the parameters of a list.
type Paging struct {
	Limit  int    `json:"limit" doc:"The most items to list." default:"50" min:"1" max:"200"`
	Cursor string `json:"cursor,omitempty" doc:"What the list before said of where it goes on." max:"512"`
}

// In puts the parameters into a query.
func (p Paging) In(query map[string]string) map[string]string {
	query["limit"], query["cursor"] = strconv.Itoa(p.Limit), p.Cursor
	return query
}

// MemberRef is a member in short.
type MemberRef struct {
	Slug     string `json:"slug"`
	Kind     string `json:"kind"`
	Name     string `json:"name,omitempty"`
	Presence string `json:"presence,omitempty"`
}

// ProjectRef is a project in short.
type ProjectRef struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
}

// Task is a task. What is null in the tracker is left out.
type Task struct {
	ID           string     `json:"id"`
	Key          string     `json:"key"`
	Number       int64      `json:"number"`
	Project      ProjectRef `json:"project"`
	ParentID     string     `json:"parent_id,omitempty"`
	Title        string     `json:"title"`
	Description  string     `json:"description"`
	Type         string     `json:"type"`
	Priority     string     `json:"priority"`
	Status       string     `json:"status"`
	Labels       []string   `json:"labels"`
	Assignee     *MemberRef `json:"assignee,omitempty"`
	AssigneeSlug string     `json:"assignee_slug,omitempty"`
	Creator      MemberRef  `json:"creator"`
	Watchers     []string   `json:"watchers"`
	BlockedBy    []string   `json:"blocked_by"`
	Blocked      bool       `json:"blocked"`
	RejectedBy   []string   `json:"rejected_by"`
	StepsTotal   int        `json:"steps_total"`
	StepsDone    int        `json:"steps_done"`
	Version      int64      `json:"version"`
	CreatedAt    string     `json:"created_at"`
	UpdatedAt    string     `json:"updated_at"`
}

// Step is a line of a task's checklist.
type Step struct {
	ID     string     `json:"id"`
	Index  int        `json:"index" doc:"Its place, from 0 on."`
	Title  string     `json:"title"`
	Done   bool       `json:"done"`
	DoneAt string     `json:"done_at,omitempty"`
	DoneBy *MemberRef `json:"done_by,omitempty"`
}

// Message is a message of a chat or a comment on a task.
type Message struct {
	ID                 string       `json:"id"`
	ChatID             string       `json:"chat_id,omitempty"`
	TaskID             string       `json:"task_id,omitempty"`
	ParentID           string       `json:"parent_id,omitempty"`
	Author             MemberRef    `json:"author"`
	AuthorSlug         string       `json:"author_slug"`
	Content            string       `json:"content"`
	Mentions           []string     `json:"mentions"`
	UnresolvedMentions []string     `json:"unresolved_mentions,omitempty" doc:"Slugs that nobody has."`
	Attachments        []Attachment `json:"attachments"`
	System             bool         `json:"system,omitempty"`
	CreatedAt          string       `json:"created_at"`
}

// Project is a project.
type Project struct {
	ID          string `json:"id"`
	Slug        string `json:"slug"`
	Key         string `json:"key"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Archived    bool   `json:"archived"`
	CreatedAt   string `json:"created_at"`
}

// Member is a member.
type Member struct {
	ID           string   `json:"id"`
	Slug         string   `json:"slug"`
	Name         string   `json:"name"`
	Kind         string   `json:"kind" doc:"human or agent"`
	Capabilities []string `json:"capabilities"`
	Status       string   `json:"status" doc:"The member's own words."`
	Activity     string   `json:"activity" doc:"idle or busy"`
	Presence     string   `json:"presence" doc:"online or offline"`
	CurrentTasks []string `json:"current_tasks"`
	Projects     []string `json:"projects" doc:"None means all."`
	Archived     bool     `json:"archived"`
	SeenAt       string   `json:"seen_at,omitempty"`
	CreatedAt    string   `json:"created_at"`
}

// Attachment is a file without what is in it.
type Attachment struct {
	ID        string `json:"id"`
	Filename  string `json:"filename"`
	MIME      string `json:"mime"`
	Size      int64  `json:"size" doc:"Bytes."`
	SHA256    string `json:"sha256"`
	TaskID    string `json:"task_id,omitempty"`
	MessageID string `json:"message_id,omitempty"`
	CreatedAt string `json:"created_at"`
}

// Either returns what was given under one of two names for the same; an error if under both,
// and not the same.
func Either(name, value, otherName, other string) (string, error) {
	if value != "" && other != "" && value != other {
		return "", fmt.Errorf("%s and %s are two names for the same: give one", name, otherName)
	}
	if value == "" {
		value = other
	}
	return value, nil
}

// One wants exactly one of two references.
func One(name, value, otherName, other string) error {
	if (value == "") == (other == "") {
		return errors.New("give exactly one of " + name + " and " + otherName)
	}
	return nil
}

// Need wants a value that a schema cannot ask for, since it has two names.
func Need(name, value string) error {
	if value == "" {
		return errors.New(name + " is missing")
	}
	return nil
}
