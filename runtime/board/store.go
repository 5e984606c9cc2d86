package board

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// ErrNotFound is what a [Reader] returns for one thing that is not there.
var ErrNotFound = errors.New("not found")

// Store keeps a board. It knows none of the rules: it keeps what it is given, and finds it
// again.
type Store interface {
	// ViewBoard runs fn on one state of the board, for which a store may run it again.
	ViewBoard(ctx context.Context, fn func(Reader) error) error
	// UpdateBoard runs fn on one state of the board and keeps all of the change that it
	// returns, or nothing: nil means that it is durable. Nobody else has changed what fn
	// saw when it is kept, for which a store may run fn again on a later state. fn must be
	// short and must not use the store but for the reader. Its error comes back as it is.
	UpdateBoard(ctx context.Context, fn func(Reader) (Change, error)) error
}

// Reader reads one state of a board until the function that was given it returns. Lists
// have at most Limit items, 0 being as many as there are. What it returns is the caller's
// to change. Ids are compared as text, and those made later are greater.
type Reader interface {
	// Project returns the project with that id or slug.
	Project(ref string) (Project, error)
	Projects(ProjectQuery) ([]Project, error)
	// Member returns the member with that id or slug.
	Member(ref string) (Member, error)
	Members(MemberQuery) ([]Member, error)
	// Chat returns the chat with that id or slug.
	Chat(ref string) (Chat, error)
	Chats(ChatQuery) ([]Chat, error)
	// Task returns the task with that id or key.
	Task(ref string) (Task, error)
	Tasks(TaskQuery) ([]Task, error)
	// Steps returns those of a task by their positions.
	Steps(task string) ([]Step, error)
	Messages(MessageQuery) ([]Message, error)
	Attachments(AttachmentQuery) ([]Attachment, error)
	// Blob returns what is kept under a digest.
	Blob(digest string) ([]byte, error)
	// Activity returns what happened to a task, the latest first.
	Activity(ActivityQuery) ([]Activity, error)
	// Queues returns those of the members that have had an event.
	Queues(members []string) (map[string]Queue, error)
	Deliveries(DeliveryQuery) ([]Delivery, error)
	// Answer returns the answer that was given to a member under an idempotency key.
	Answer(member, key string) (Answer, error)
}

// Project is a project. Its slug and its key are of no other.
type Project struct {
	ID, Slug, Key, Name, Description string
	Archived                         bool
	LastNumber                       int64 // of its tasks
	Created                          time.Time
}

// ProjectQuery asks for projects by slug.
type ProjectQuery struct {
	Archived bool   // those too
	Key      string // that key
	After    string // a slug
	Limit    int
}

// Member is a member. Its slug is of no other and never changes.
type Member struct {
	ID, Slug, Name string
	Kind           tracker.Kind
	Capabilities   []string
	Projects       []string // ids; none is all of them
	Archived       bool
	Status         string
	Busy           bool
	CurrentTasks   []string
	// Online: it is connected, and was heard of at Seen.
	Online bool
	Seen   time.Time
	// Announce: something of this has changed at Changed that nobody was told of.
	Announce bool
	Changed  time.Time
	Created  time.Time
}

// MemberQuery asks for members by slug. What is given must all hold.
type MemberQuery struct {
	Slugs    []string // if not nil, these
	Project  string   // an id: those of the project and those of all
	Kind     tracker.Kind
	Archived bool      // those too
	Unseen   time.Time // if not zero, those online that were last heard of before
	Announce time.Time // if not zero, those to announce that changed before
	After    string    // a slug
	Limit    int
}

// Chat is a chat. Its slug is of no other.
type Chat struct {
	ID, Slug, Name, Project string // Project: an id, or ""
	Members                 []string
	Archived                bool
	Created                 time.Time
}

// ChatQuery asks for chats by slug.
type ChatQuery struct {
	Project  string // an id
	Member   string // a slug: those with it and those without members
	Archived bool   // those too
	After    string // a slug
	Limit    int
}

// Task is a task. Lists in it are sorted but for the blockers. Members are slugs, tasks and
// projects ids.
type Task struct {
	ID, Key               string
	Number                int64
	Project, Parent       string
	Title, Description    string
	Type, Priority        string
	Status                tracker.Status
	Assignee, Creator     string // Assignee: "" is nobody
	Labels, Watchers      []string
	Blockers              []string
	OpenBlockers          int // of them, neither done nor cancelled
	RejectedBy            []string
	StepsTotal, StepsDone int
	Version               int64
	Created, Updated      time.Time
	// Search is what is looked through for a text: lower case.
	Search string
}

// TaskQuery asks for tasks, those with the greatest ids first. What is given must all hold.
type TaskQuery struct {
	IDs        []string // if not nil, these
	Project    string
	Statuses   []tracker.Status // any
	Assignee   string           // a slug
	Unassigned bool
	Labels     []string // all
	Type       string
	Priority   string
	Parent     string
	Creator    string
	Watcher    string
	Blocker    string // those that wait for the task of that id
	Number     int64  // if not 0
	Text       string // in Search
	Unblocked  bool   // OpenBlockers is 0
	Before     string // an id
	Limit      int
}

// Step is a step of a task. Positions of a task's steps are 0, 1, and so on.
type Step struct {
	ID, Task string
	Position int
	Title    string
	Done     bool
	DoneAt   time.Time
	DoneBy   string // a slug
}

// Message is a message in a chat or at a task.
type Message struct {
	ID, Chat, Task, Parent string // ids, or ""
	Author                 string // a slug
	Content                string
	Mentions               []string
	System                 bool
	Created                time.Time
}

// MessageQuery asks for messages, those with the greatest ids first. What is given must all
// hold.
type MessageQuery struct {
	ID, Chat, Task, Parent string
	Before                 string // an id
	Limit                  int
}

// Attachment is a file at a task, at a message, or at both: a message of the task. Digest is
// what its content is kept under.
type Attachment struct {
	ID, Filename, MIME, Digest string
	Size                       int64
	Task, Message, Project     string // ids, or ""
	Author                     string // a slug
	Created                    time.Time
}

// AttachmentQuery asks for files, those with the smallest ids first. What is given must all
// hold.
type AttachmentQuery struct {
	ID, Task, Project string
	Messages          []string // if not nil, of any of these
	After             string   // an id
	Limit             int
}

// Blob is content under its digest, SHA-256 in hexadecimal.
type Blob struct {
	Digest string
	Bytes  []byte
}

// Activity is one entry of the log of a task. There is only ever more of it.
type Activity struct {
	ID, Task, Actor, Action string
	Changes                 json.RawMessage // of [tracker.Change] by field, or nil
	At                      time.Time
}

// ActivityQuery asks for entries with ids below Before, if it is given.
type ActivityQuery struct {
	Task, Before string
	Limit        int
}

// Queue is what there is of a member's queue.
type Queue struct {
	Last int64 // the number of the last event there ever was
	// Count is how many are in it, the parked ones too.
	Count int
}

// Event is an event with the places that it has in queues. Number follows the last of its
// queue.
type Event struct {
	ID, Name string
	Data     json.RawMessage
	At       time.Time
	Places   []Place
}

// Place is one in a member's queue.
type Place struct {
	Member string // a slug
	Number int64
}

// Delivery is an event in one queue.
type Delivery struct {
	Place
	ID, Name string
	Data     json.RawMessage
	At       time.Time
	Tries    int
	Parked   bool
}

// DeliveryQuery asks for events in queues by member and number. What is given must all hold.
type DeliveryQuery struct {
	Member string
	IDs    []string // if not nil, these
	Parked bool     // those that are; otherwise those that are not, unless Any
	Any    bool
	Older  time.Time // if not zero, those from before
	After  int64     // a number
	UpTo   int64     // a number, if not 0
	Limit  int
}

// Answer is what was answered under an idempotency key of a member.
type Answer struct {
	Member, Key string
	Request     string // its digest
	Body        json.RawMessage
	At          time.Time
}

// Change is what happens to a board at once. What has an id that is there replaces that,
// whole, and messages, attachments, activity and blobs are only ever new or the same.
type Change struct {
	Projects    []Project
	Members     []Member
	Chats       []Chat
	Tasks       []Task
	Steps       []Step
	Messages    []Message
	Attachments []Attachment
	Blobs       []Blob
	Activity    []Activity
	Answers     []Answer
	Events      []Event
	// Tried sets Tries and Parked of what is in queues; nothing else of it is looked at.
	Tried []Delivery
	// Left takes events from queues. One that is in none is gone.
	Left []Place
	// GoneTasks takes tasks away by their ids, with their steps, messages and attachments,
	// and blobs that nothing else is kept under. Their activity stays.
	GoneTasks []string
	GoneSteps []string // ids
	// AnswersBefore, if not zero, forgets answers that were given before.
	AnswersBefore time.Time
}

// Empty reports whether nothing happens.
func (c Change) Empty() bool {
	return len(c.Projects)+len(c.Members)+len(c.Chats)+len(c.Tasks)+len(c.Steps)+len(c.Messages)+len(c.Attachments)+
		len(c.Blobs)+len(c.Activity)+len(c.Answers)+len(c.Events)+len(c.Tried)+len(c.Left)+len(c.GoneTasks)+
		len(c.GoneSteps) == 0 && c.AnswersBefore.IsZero()
}
