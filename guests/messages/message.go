package main

import (
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
