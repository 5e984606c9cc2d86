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

// Service is a board as one caller sees it. What it refuses is an [*Error]; other errors
// are its own trouble and nobody's business. A reference to a task is its id, its key, or
// "#15" or "15" where only one task has that number; one to a project, a chat or a
// member is an id or a slug.
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
	ListTasks(context.Context, TaskQuery) (Page[TaskOut], error)
	GetTask(ctx context.Context, task string) (TaskOut, error)
	CreateTask(context.Context, CreateTask) (TaskOut, error)
	UpdateTask(ctx context.Context, task string, u UpdateTask) (TaskOut, error)
	DeleteTask(ctx context.Context, task string) error
	// TakeTask gives a task that is free to the agent. Who has it already gets it again.
	TakeTask(ctx context.Context, task string, t TakeTask) (TaskOut, error)
	RejectTask(ctx context.Context, task string, r RejectTask) (Rejected, error)
	ReleaseTask(ctx context.Context, task string, r ReleaseTask) (TaskOut, error)
	WatchTask(ctx context.Context, task string, w WatchTask) (Watching, error)
	UnwatchTask(ctx context.Context, task, member string) (Watching, error)
	AddDependency(ctx context.Context, task string, d AddDependency) (TaskOut, error)
	RemoveDependency(ctx context.Context, task, blocker string) (TaskOut, error)
	// TaskActivity lists what happened to a task, the latest first.
	TaskActivity(ctx context.Context, task string, p Paging) (Page[Activity], error)
}

// Steps are the steps of tasks.
type Steps interface {
	ListSteps(ctx context.Context, task string) ([]StepOut, error)
	GetStep(ctx context.Context, task, step string) (StepOut, error)
	AddStep(ctx context.Context, task string, a AddStep) (StepOut, error)
	UpdateStep(ctx context.Context, task, step string, u UpdateStep) (StepOut, error)
	DeleteStep(ctx context.Context, task, step string) error
}

// Messages are those of chats and of tasks.
type Messages interface {
	ListMessages(context.Context, MessageQuery) (Page[MessageOut], error)
	GetMessage(ctx context.Context, id string) (MessageOut, error)
	SendMessage(context.Context, SendMessage) (MessageOut, error)
	ReplyMessage(ctx context.Context, parent string, r Reply) (MessageOut, error)
}

// Chats are the chats that the caller may read.
type Chats interface {
	ListChats(context.Context, ChatQuery) (Page[ChatOut], error)
	GetChat(ctx context.Context, chat string) (ChatOut, error)
	CreateChat(context.Context, CreateChat) (ChatOut, error)
	UpdateChat(ctx context.Context, chat string, u UpdateChat) (ChatOut, error)
}

// Projects are the projects.
type Projects interface {
	ListProjects(context.Context, ProjectQuery) (Page[ProjectOut], error)
	GetProject(ctx context.Context, project string) (ProjectOut, error)
	CreateProject(context.Context, CreateProject) (ProjectOut, error)
	UpdateProject(ctx context.Context, project string, u UpdateProject) (ProjectOut, error)
}

// Members are the members; "me" is the caller.
type Members interface {
	ListMembers(context.Context, MemberQuery) (Page[MemberOut], error)
	GetMember(ctx context.Context, member string) (MemberOut, error)
	CreateMember(context.Context, CreateMember) (MemberOut, error)
	UpdateMember(ctx context.Context, member string, u UpdateMember) (MemberOut, error)
	UpdateMyStatus(context.Context, MyStatus) (MyStatus, error)
}

// Files are the files at tasks and messages.
type Files interface {
	ListFiles(context.Context, FileQuery) (Page[AttachmentOut], error)
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
