package main

import (
	"cmp"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var comment = sdk.Define(sdk.Spec{
	Name:  "add_comment",
	Title: "Comment on a task",
	Description: "Adds a comment to a task, as send_message with task_id does. Say what you did and what is left when you finish. @slug mentions " +
		"a member, who is then told of it.",
	Additive: true,
	Translations: tracker.InRussian("Прокомментировать задачу", "Добавить комментарий к задаче. Закончив, скажи, что сделано и что осталось.", map[string]string{
		"task_id":  "ID или ключ задачи (TE-15)",
		"content":  "Комментарий, обязателен",
		"text":     "То же, что content",
		"mentions": "Slug тех, кого упомянуть, вместо упомянутых в тексте",
	}),
}, tracker.Told(addComment, saySent))

type commentInput struct {
	TaskID   string   `json:"task_id" doc:"The task's id, its key such as TE-15, or #15." min:"1" max:"128"`
	Content  string   `json:"content,omitempty" doc:"The comment. Must be there." max:"65536"`
	Text     string   `json:"text,omitempty" doc:"The same as content." max:"65536"`
	Mentions []string `json:"mentions,omitempty" doc:"Slugs to mention, in place of those in the content." max:"50"`
}

func addComment(c *sdk.Call, in commentInput) (m tracker.Message, err error) {
	content, err := tracker.Either("content", in.Content, "text", in.Text)
	if err = cmp.Or(err, tracker.Need("content", content)); err != nil {
		return m, err
	}
	return said{content, in.Mentions}.to(c, "tasks", in.TaskID, "comments")
}
