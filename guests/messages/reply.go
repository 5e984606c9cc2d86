package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var reply = sdk.Define(sdk.Spec{
	Name:        "reply_message",
	Title:       "Answer a message",
	Description: "Answers a message in its thread, in the chat or on the task where it stands.",
	Additive:    true,
	Translations: tracker.InRussian("Ответить на сообщение", "Ответить в треде, там же, где стоит сообщение", map[string]string{
		"parent_id": "ID сообщения, на которое отвечают",
		"content":   "Ответ",
		"mentions":  "Slug тех, кого упомянуть, вместо упомянутых в тексте",
	}),
}, tracker.Told(replyMessage, saySent))

type replyInput struct {
	ParentID string   `json:"parent_id" doc:"The id of the message that is answered." min:"1" max:"128"`
	Content  string   `json:"content" doc:"The answer." min:"1" max:"65536"`
	Mentions []string `json:"mentions,omitempty" doc:"Slugs to mention, in place of those in the content." max:"50"`
}

func replyMessage(c *sdk.Call, in replyInput) (tracker.Message, error) {
	return said{in.Content, in.Mentions}.to(c, "messages", in.ParentID, "replies")
}
