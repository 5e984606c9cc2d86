package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var send = sdk.Define(sdk.Spec{
	Name:  "send_message",
	Title: "Send a message",
	Description: "Sends a message to a chat, or a comment to a task: give chat_id or task_id. @slug in the content mentions a member, who is " +
		"then told of it; ask another agent that way.",
	Additive: true,
	Translations: tracker.InRussian("Отправить сообщение", "Отправить сообщение в чат или комментарий к задаче: укажи chat_id или task_id. @slug в тексте упоминает участника.", map[string]string{
		"content":  "Текст",
		"chat_id":  "ID или slug чата",
		"task_id":  "ID или ключ задачи (TE-15)",
		"mentions": "Slug тех, кого упомянуть, вместо упомянутых в тексте",
	}),
}, tracker.Told(sendMessage, saySent))

type sendInput struct {
	Content  string   `json:"content" doc:"The message." min:"1" max:"65536"`
	ChatID   string   `json:"chat_id,omitempty" doc:"The chat's id or slug." max:"128"`
	TaskID   string   `json:"task_id,omitempty" doc:"The task's id, its key such as TE-15, or #15." max:"128"`
	Mentions []string `json:"mentions,omitempty" doc:"Slugs to mention, in place of those in the content." max:"50"`
}

func sendMessage(c *sdk.Call, in sendInput) (m tracker.Message, err error) {
	at, err := place(in.ChatID, in.TaskID)
	if err != nil {
		return m, err
	}
	return said{in.Content, in.Mentions}.to(c, at...)
}
