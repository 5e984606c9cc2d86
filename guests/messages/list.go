package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var list = sdk.Define(sdk.Spec{
	Name:        "list_messages",
	Title:       "List messages",
	Description: "Reads the newest messages of a chat, or the newest comments of a task, the oldest of them first: give chat_id or task_id.",
	ReadOnly:    true,
	Translations: tracker.InRussian("Сообщения", "Получить сообщения чата или комментарии к задаче, последние: укажи chat_id или task_id", map[string]string{
		"chat_id": "ID или slug чата",
		"task_id": "ID или ключ задачи (TE-15)",
		"limit":   "Сколько самое большее показать",
		"cursor":  "Где продолжить: из ответа на предыдущий вызов",
	}),
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
