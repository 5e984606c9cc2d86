package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var comments = sdk.Define(sdk.Spec{
	Name:        "list_comments",
	Title:       "Read the comments of a task",
	Description: "Reads the newest comments of a task, the oldest of them first, as list_messages with task_id does.",
	ReadOnly:    true,
	Translations: tracker.InRussian("Комментарии к задаче", "Прочитать последние комментарии к задаче", map[string]string{
		"task_id": "ID или ключ задачи (TE-15)",
		"limit":   "Сколько самое большее показать",
		"cursor":  "Где продолжить: из ответа на предыдущий вызов",
	}),
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
	Translations: tracker.InRussian("Прочитать чат", "Прочитать последние сообщения чата", map[string]string{
		"chat_id": "ID или slug чата",
		"limit":   "Сколько самое большее показать",
		"cursor":  "Где продолжить: из ответа на предыдущий вызов",
	}),
}, listed(func(c *sdk.Call, in readInput) (page, error) {
	return messages(c, in.Paging, "chats", in.ChatID, "messages")
}))

type readInput struct {
	ChatID string `json:"chat_id" doc:"The chat's id or slug." min:"1" max:"128"`
	tracker.Paging
}
