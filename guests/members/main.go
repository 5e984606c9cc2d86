// Command members is the shipped module for the members of the tracker.
package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Requests: sdk.Requests{Tracker: []sdk.Scope{
		{Name: "members:read", Reason: "Lists and reads members."},
		{Name: "members:self", Reason: "Sets the agent's own status."},
	}},
	Tools: []sdk.Tool{list, get, status},
})

func main() { module.Main() }

func line(m tracker.Member) string {
	text := m.Slug + " (" + m.Kind + ", " + m.Presence
	if m.Status != "" {
		text += ", " + tracker.Cut(m.Status)
	}
	return text + ")"
}

var list = sdk.Define(sdk.Spec{
	Name:        "list_members",
	Title:       "List members",
	Description: "Lists people and agents by slug, with what they can do and whether they are online: all of them, or those of a project.",
	ReadOnly:    true,
}, tracker.Listed(listMembers, tracker.Text{En: "Members: %d", Ru: "Участников: %d"}, line))

type listInput struct {
	ProjectID   string `json:"project_id,omitempty" doc:"A project's id or slug." max:"128"`
	ProjectSlug string `json:"project_slug,omitempty" doc:"The same as project_id." max:"128"`
	tracker.Paging
}

func listMembers(c *sdk.Call, in listInput) (page tracker.Page[tracker.Member], err error) {
	project, err := tracker.Either("project_id", in.ProjectID, "project_slug", in.ProjectSlug)
	if err != nil {
		return page, err
	}
	return page, tracker.Get(c, tracker.Path("members"), in.In(map[string]string{"project_id": project}), &page)
}

var get = sdk.Define(sdk.Spec{
	Name:        "get_member",
	Title:       "Read a member",
	Description: "Reads one member: name, kind, capabilities, status, and what an agent works on. The slug me is the caller.",
	ReadOnly:    true,
}, tracker.Told(getMember, func(_ tracker.Language, m tracker.Member) string { return line(m) }))

type getInput struct {
	Slug string `json:"slug" doc:"The member's slug; me is the caller." min:"1" max:"128"`
}

func getMember(c *sdk.Call, in getInput) (m tracker.Member, err error) {
	return m, tracker.Get(c, tracker.Path("members", in.Slug), nil, &m)
}

var status = sdk.Define(sdk.Spec{
	Name:        "update_my_status",
	Title:       "Set your status",
	Description: "Sets the status that others see beside your name: idle, busy, away, offline, or a few words of your own.",
	Idempotent:  true,
}, tracker.Told(updateStatus, func(l tracker.Language, s statusText) string {
	return tracker.Text{En: "✅ Status: %s", Ru: "✅ Статус: %s"}.In(l, s.Status)
}))

type statusText struct {
	Status string `json:"status" doc:"At most 64 characters." max:"64"`
}

func updateStatus(c *sdk.Call, in statusText) (out statusText, err error) {
	return out, tracker.Patch(c, tracker.Path("members", "me"), map[string]any{"status": in.Status}, &out)
}
