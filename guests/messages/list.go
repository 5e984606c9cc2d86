package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

type page = tracker.Page[tracker.Message]

// listed makes a tool's function of one that reads messages.
func listed[In any](run func(*sdk.Call, In) (page, error)) func(*sdk.Call, In) (sdk.Said[[]tracker.Message], error) {
	return tracker.Listed(run, tracker.Text{En: "Messages: %d", Ru: "Сообщений: %d"}, func(m tracker.Message) string {
		return m.AuthorSlug + ": " + tracker.Cut(m.Content)
	})
}

func messages(c *sdk.Call, p tracker.Paging, segments ...string) (out page, err error) {
	return out, tracker.Get(c, tracker.Path(segments...), p.In(map[string]string{}), &out)
}

var list = sdk.Define(sdk.Spec{
	Name:        "list_messages",
	Title:       "List messages",
	Description: "Reads the newest messages of a chat, or the newest comments of a task, the oldest of them first: give chat_id or task_id.",
	ReadOnly:    true,
}, listed(func(c *sdk.Call, in listInput) (page, error) {
	at, err := place(in.ChatID, in.TaskID)
	if err != nil {
		return page{}, err
	}
	return messages(c, in.Paging, at...)
}))

type listInput struct {
	ChatID string `json:"chat_id,omitempty" doc:"The chat's id or slug." max:"128"`
	TaskID string `json:"task_id,omitempty" doc:"The task's id, its key such as TE-15, or #15." max:"128"`
	tracker.Paging
}

var comments = sdk.Define(sdk.Spec{
	Name:        "list_comments",
	Title:       "Read the comments of a task",
	Description: "Reads the newest comments of a task, the oldest of them first, as list_messages with task_id does.",
	ReadOnly:    true,
}, listed(func(c *sdk.Call, in commentsInput) (page, error) {
	return messages(c, in.Paging, "tasks", in.TaskID, "comments")
}))

type commentsInput struct {
	TaskID string `json:"task_id" doc:"The task's id, its key such as TE-15, or #15." min:"1" max:"128"`
	tracker.Paging
}

var read = sdk.Define(sdk.Spec{
	Name:        "read_messages",
	Title:       "Read a chat",
	Description: "Reads the newest messages of a chat, the oldest of them first, as list_messages with chat_id does.",
	ReadOnly:    true,
}, listed(func(c *sdk.Call, in readInput) (page, error) {
	return messages(c, in.Paging, "chats", in.ChatID, "messages")
}))

type readInput struct {
	ChatID string `json:"chat_id" doc:"The chat's id or slug." min:"1" max:"128"`
	tracker.Paging
}
