package tracker

import (
	"context"
	"slices"
)

// A Caller is who asks. It comes from the token of a request, never from what it says.
type Caller struct {
	Slug   string // of the member
	Scopes []string
}

// Has reports whether the caller has a scope.
func (c Caller) Has(scope string) bool { return slices.Contains(c.Scopes, scope) }

// Scopes of a caller. None includes another, but an admin manages projects, members, chats
// and parked events.
const (
	TasksRead     = "tasks:read"
	TasksWrite    = "tasks:write"  // create, update
	TasksTake     = "tasks:take"   // take, reject, release, watch
	TasksAssign   = "tasks:assign" // others
	TasksForce    = "tasks:force"
	StepsRead     = "steps:read"
	StepsWrite    = "steps:write"
	MessagesRead  = "messages:read"
	MessagesWrite = "messages:write"
	ProjectsRead  = "projects:read"
	MembersRead   = "members:read"
	MembersSelf   = "members:self"
	FilesRead     = "files:read"
	FilesWrite    = "files:write"
	Admin         = "admin"
)

// Service is a board as one caller sees it. A reference to a task is its id, its key, or
// "#15" or "15" where only one task has that number ([CodeAmbiguous] otherwise); one to a
// project, a chat or a member is an id or a slug.
//
// What it refuses is an [*Error], and then nothing has changed: [CodeForbidden] without the
// scope, [CodeNotFound] for what is not there or not for the caller, [CodeInvalid] for a value
// that is none or over its limit, and what stands beside the methods. Other errors, those of
// the context among them, are its own trouble and nobody's business. A method that returns
// nil has kept what it changed, with the events that tell of it. The caller owns what it gets.
//
// An IdempotencyKey of 1 to [MaxKey] bytes makes a request of the same caller, when it comes
// again, return what it returned first; another request under it is [CodeReused].
type Service interface {
	Tasks
	Steps
	Messages
	Chats
	Projects
	Members
	Files
	Queue
}

// Tasks are the tasks of a [Service].
type Tasks interface {
	// ListTasks lists those that fit the query, the newest first.
	ListTasks(context.Context, TaskQuery) (Page[TaskOut], error)
	GetTask(ctx context.Context, task string) (TaskOut, error)
	// CreateTask makes a task, with the caller as its creator and first watcher. In an archived
	// project it is [CodeConflict]; waiting in a circle is [CodeCycle].
	CreateTask(context.Context, CreateTask) (TaskOut, error)
	// UpdateTask changes what is given, all of it or nothing: [CodeTransition] for a status
	// that cannot follow, [CodeBlocked] for a task that waits, [CodeTaken] for one that is
	// somebody else's to give away, [CodeCycle], and [CodeVersion] or [CodePrecondition] for
	// one that has changed. The same values again are no change.
	UpdateTask(ctx context.Context, task string, u UpdateTask) (TaskOut, error)
	// DeleteTask takes a task away for good, with its steps, comments and files; its activity
	// stays. One with subtasks is [CodeConflict].
	DeleteTask(ctx context.Context, task string) error
	// TakeTask gives a task that is free to the agent, which begins it: to one of many, the
	// others get [CodeTaken] with the holder. Who has it already gets it again, unchanged. One
	// that waits is [CodeBlocked], one that is closed [CodeTransition].
	TakeTask(ctx context.Context, task string, t TakeTask) (TaskOut, error)
	// RejectTask gives the caller's task back, or refuses one that was offered to everybody:
	// it is nobody's, and todo. Somebody else's is [CodeTaken].
	RejectTask(ctx context.Context, task string, r RejectTask) (Rejected, error)
	// ReleaseTask is RejectTask without an opinion. What is nobody's already is no error.
	ReleaseTask(ctx context.Context, task string, r ReleaseTask) (TaskOut, error)
	// WatchTask and UnwatchTask return who watches then; to do it again changes nothing.
	WatchTask(ctx context.Context, task string, w WatchTask) (Watching, error)
	UnwatchTask(ctx context.Context, task, member string) (Watching, error)
	// AddDependency makes a task wait, for at most [MaxBlockers]. One that would close a circle
	// is [CodeCycle] with the path.
	AddDependency(ctx context.Context, task string, d AddDependency) (TaskOut, error)
	// RemoveDependency ends that; where there is none it changes nothing.
	RemoveDependency(ctx context.Context, task, blocker string) (TaskOut, error)
	// TaskActivity lists what happened to a task, the latest first.
	TaskActivity(ctx context.Context, task string, p Paging) (Page[Activity], error)
}

// Steps are the steps of tasks, at most [MaxSteps] of one. One is named by its id or by its
// place from 0 on.
type Steps interface {
	// ListSteps lists all of them, in their order.
	ListSteps(ctx context.Context, task string) ([]StepOut, error)
	GetStep(ctx context.Context, task, step string) (StepOut, error)
	AddStep(ctx context.Context, task string, a AddStep) (StepOut, error)
	// UpdateStep changes what is given, and without anything completes the step. To complete
	// it twice changes nothing: who did it first stays.
	UpdateStep(ctx context.Context, task, step string, u UpdateStep) (StepOut, error)
	DeleteStep(ctx context.Context, task, step string) error
}

// Messages are those of chats and of tasks. They are never changed.
type Messages interface {
	// ListMessages lists the newest, the oldest of them first. Its cursor leads to older ones.
	ListMessages(context.Context, MessageQuery) (Page[MessageOut], error)
	GetMessage(ctx context.Context, id string) (MessageOut, error)
	// SendMessage sends at most [MaxMessage] bytes. Into an archived chat it is [CodeConflict].
	SendMessage(context.Context, SendMessage) (MessageOut, error)
	// ReplyMessage sends a message to where another stands, as an answer to it.
	ReplyMessage(ctx context.Context, parent string, r Reply) (MessageOut, error)
}

// Chats are the chats that the caller may read: those without members, those that it is a member
// of, and all for an admin. Making and changing them is for an admin; a slug that there is
// already is [CodeExists].
type Chats interface {
	ListChats(context.Context, ChatQuery) (Page[ChatOut], error)
	GetChat(ctx context.Context, chat string) (ChatOut, error)
	CreateChat(context.Context, CreateChat) (ChatOut, error)
	UpdateChat(ctx context.Context, chat string, u UpdateChat) (ChatOut, error)
}

// Projects are the projects. Making and changing them is for an admin; a slug or a key that
// there is already is [CodeExists].
type Projects interface {
	ListProjects(context.Context, ProjectQuery) (Page[ProjectOut], error)
	GetProject(ctx context.Context, project string) (ProjectOut, error)
	CreateProject(context.Context, CreateProject) (ProjectOut, error)
	UpdateProject(ctx context.Context, project string, u UpdateProject) (ProjectOut, error)
}

// Members are the members; "me" is the caller. Making and changing them is for an admin; a slug
// that there is already is [CodeExists].
type Members interface {
	ListMembers(context.Context, MemberQuery) (Page[MemberOut], error)
	GetMember(ctx context.Context, member string) (MemberOut, error)
	CreateMember(context.Context, CreateMember) (MemberOut, error)
	UpdateMember(ctx context.Context, member string, u UpdateMember) (MemberOut, error)
	UpdateMyStatus(context.Context, MyStatus) (MyStatus, error)
}

// Files are the files at tasks and messages. They are kept by their digests, and read by whoever
// may read where they are.
type Files interface {
	ListFiles(context.Context, FileQuery) (Page[AttachmentOut], error)
	// UploadFile keeps at most [MaxFile] bytes ([CodeTooLarge]), under a name without a path.
	// Only who wrote a message puts files to it.
	UploadFile(context.Context, UploadFile) (AttachmentOut, error)
	DownloadFile(ctx context.Context, id string) (FileOut, error)
}

// Queue holds the events of one agent, the caller, until it has acknowledged them. What a
// socket sends, and what is polled while there is none, comes from here.
type Queue interface {
	// Connect says that the caller's agent has come: it is online now. resume, if not nil,
	// acknowledges what came up to its seq. It returns the agent and the seq of the last
	// event in its queue.
	Connect(ctx context.Context, a AuthAgent, resume *Resume) (MemberOut, int64, error)
	// Heartbeat keeps it online, and says what it does.
	Heartbeat(context.Context, Heartbeat) error
	// Disconnect says that it has left.
	Disconnect(context.Context) error
	// Events returns those with a seq above after that are neither acknowledged nor parked,
	// in their order.
	Events(ctx context.Context, after int64, limit int) ([]Event, error)
	// Take returns what Events does and counts that it was sent, as Sent does: an event that is
	// parked says so, and is not to be sent.
	Take(ctx context.Context, after int64, limit int) ([]Event, error)
	// Sent counts that events were sent, by their ids, and parks those that have been
	// [MaxTries] times and sent before. It returns the ids of those.
	Sent(ctx context.Context, ids []string) (parked []string, err error)
	// Ack takes events from the queue. An id that is not there is nothing.
	Ack(ctx context.Context, ids ...string) error
	// Wait returns when the queue may have an event above after, or with ctx's error.
	Wait(ctx context.Context, after int64) error
	// Parked lists the parked events of an agent, for an admin or the agent itself.
	Parked(ctx context.Context, member string, p Paging) (Page[Event], error)
	// Redrive puts a parked event back, as if it had never been sent.
	Redrive(ctx context.Context, member, id string) error
}
