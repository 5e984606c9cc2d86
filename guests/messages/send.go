package main

import (
	"cmp"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

// said is what a message says, and to whom.
type said struct {
	content  string
	mentions []string
}

func (s said) to(c *sdk.Call, segments ...string) (m tracker.Message, err error) {
	body := map[string]any{"content": s.content}
	if s.mentions != nil {
		body["mentions"] = s.mentions
	}
	return m, tracker.Post(c, tracker.Path(segments...), body, &m)
}

// place is where a message goes, or comes from.
func place(chat, task string) ([]string, error) {
	if err := tracker.One("chat_id", chat, "task_id", task); err != nil {
		return nil, err
	}
	if chat != "" {
		return []string{"chats", chat, "messages"}, nil
	}
	return []string{"tasks", task, "comments"}, nil
}

func saySent(l tracker.Language, m tracker.Message) string {
	text := tracker.Text{En: "✅ Sent", Ru: "✅ Отправлено"}.In(l)
	for _, slug := range m.UnresolvedMentions {
		text += "\n" + tracker.Text{En: "nobody is called @%s", Ru: "нет участника @%s"}.In(l, slug)
	}
	return text
}

var send = sdk.Define(sdk.Spec{
	Name:  "send_message",
	Title: "Send a message",
	Description: "Sends a message to a chat, or a comment to a task: give chat_id or task_id. @slug in the content mentions a member, who is " +
		"then told of it; ask another agent that way.",
	Additive: true,
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

var comment = sdk.Define(sdk.Spec{
	Name:  "add_comment",
	Title: "Comment on a task",
	Description: "Adds a comment to a task, as send_message with task_id does. Say what you did and what is left when you finish. @slug mentions " +
		"a member, who is then told of it.",
	Additive: true,
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

var reply = sdk.Define(sdk.Spec{
	Name:        "reply_message",
	Title:       "Answer a message",
	Description: "Answers a message in its thread, in the chat or on the task where it stands.",
	Additive:    true,
}, tracker.Told(replyMessage, saySent))

type replyInput struct {
	ParentID string   `json:"parent_id" doc:"The id of the message that is answered." min:"1" max:"128"`
	Content  string   `json:"content" doc:"The answer." min:"1" max:"65536"`
	Mentions []string `json:"mentions,omitempty" doc:"Slugs to mention, in place of those in the content." max:"50"`
}

func replyMessage(c *sdk.Call, in replyInput) (tracker.Message, error) {
	return said{in.Content, in.Mentions}.to(c, "messages", in.ParentID, "replies")
}
