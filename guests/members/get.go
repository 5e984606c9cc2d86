package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var get = sdk.Define(sdk.Spec{
	Name:        "get_member",
	Title:       "Read a member",
	Description: "Reads one member: name, kind, capabilities, status, and what an agent works on. The slug me is the caller.",
	ReadOnly:    true,
	Translations: tracker.InRussian("Участник", "Информация об участнике", map[string]string{
		"slug": "Slug участника; me это тот, кто спрашивает",
	}),
}, tracker.Told(getMember, func(_ tracker.Language, m tracker.Member) string { return line(m) }))

type getInput struct {
	Slug string `json:"slug" doc:"The member's slug; me is the caller." min:"1" max:"128"`
}

func getMember(c *sdk.Call, in getInput) (m tracker.Member, err error) {
	return m, tracker.Get(c, tracker.Path("members", in.Slug), nil, &m)
}
