package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/owner"
	"github.com/hutch-run/hutch/runtime/store"
)

const flagPerson = "person"

func trackerInitCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "init", Usage: "make what a tracker begins with: a person, a project and its chat", UsageText: "hutch tracker init [PROJECT] [flags]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagPerson, Usage: "`SLUG`: the person (default: who asks; local without a token)"},
			&cli.StringFlag{Name: flagKey, Usage: "`KEY`: what the keys of the project's tasks begin with (default: made of its slug)"},
			&cli.StringFlag{Name: flagChat, Usage: "`SLUG`: the project's chat (default: as the project)"},
		},
		Description: `PROJECT is the slug of the project, team if there is none. What is there already is left as it is, so it may
be run again. What to do next goes to standard error.

examples:
  $ hutch tracker init
  $ hutch tracker init team-board --key TB --person alice`,
	}, 0, 1, runTrackerInit)
}

// beginning is what "hutch tracker init --json" prints.
type beginning struct {
	Person  tracker.MemberOut  `json:"person"`
	Project tracker.ProjectOut `json:"project"`
	Chat    tracker.ChatOut    `json:"chat"`
	// Made are those that were not there before.
	Made []string `json:"made"`
	// Next are commands to go on with.
	Next []string `json:"next"`
}

// The parts of a beginning.
const (
	partPerson  = "person"
	partProject = "project"
	partChat    = "chat"
)

func runTrackerInit(a trackerAsk) error {
	b := beginning{Made: []string{}}
	keys := []string{onceKey(), onceKey(), onceKey()}
	err := a.do(func(ctx context.Context, s trackerService) error {
		for i, part := range []func(context.Context, trackerService, trackerAsk, string) error{b.person, b.project, b.chat} {
			if err := part(ctx, s, a, keys[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if b.Next, err = a.nextSteps(b.Project); err != nil {
		return err
	}
	if a.Bool(flagJSON) {
		return printJSON(a.App.Writer, b)
	}
	err = rendered(a.App.Writer, func(w io.Writer) {
		trackerTable(w, a.columns(), [][]string{
			{partPerson, b.Person.Slug, "-", b.state(partPerson)}, {partProject, b.Project.Slug, b.Project.Key, b.state(partProject)},
			{partChat, b.Chat.Slug, "-", b.state(partChat)},
		})
	})
	a.say.text("\ntry:\n  " + strings.Join(b.Next, "\n  ") + "\n")
	return err
}

func (b *beginning) state(part string) string {
	if slices.Contains(b.Made, part) {
		return "made"
	}
	return "was there"
}

// makeOr makes a part, or takes the one that is there.
func makeOr[T any](b *beginning, part string, make, take func() (T, error)) (T, error) {
	out, err := make()
	if errors.Is(err, tracker.Errorf(tracker.CodeExists, "")) {
		return take()
	}
	if err == nil && !slices.Contains(b.Made, part) {
		b.Made = append(b.Made, part)
	}
	return out, err
}

func (b *beginning) person(ctx context.Context, s trackerService, a trackerAsk, key string) (err error) {
	slug := a.String(flagPerson)
	if slug == "" {
		b.Person, err = s.GetMember(ctx, "me")
		return err
	}
	b.Person, err = makeOr(b, partPerson, func() (tracker.MemberOut, error) {
		return s.CreateMember(ctx, tracker.CreateMember{Slug: slug, Kind: tracker.Human, IdempotencyKey: key})
	}, func() (tracker.MemberOut, error) { return s.GetMember(ctx, slug) })
	if err == nil && b.Person.Kind != tracker.Human {
		err = fmt.Errorf("member %s is an %s", quoted(slug), b.Person.Kind)
	}
	return err
}

// firstProject is the project of who names none.
const firstProject = "team"

func (b *beginning) project(ctx context.Context, s trackerService, a trackerAsk, key string) (err error) {
	slug := cmp.Or(a.arg(0), firstProject)
	b.Project, err = makeOr(b, partProject, func() (tracker.ProjectOut, error) {
		return s.CreateProject(ctx, tracker.CreateProject{Slug: slug, Key: a.String(flagKey), IdempotencyKey: key})
	}, func() (tracker.ProjectOut, error) { return s.GetProject(ctx, slug) })
	if want := a.String(flagKey); err == nil && want != "" && !strings.EqualFold(want, b.Project.Key) {
		err = hinted(fmt.Errorf("project %s has the key %s, not %s: a key never changes", quoted(slug), b.Project.Key, quoted(want)), "leave --%s out, or name another project", flagKey)
	}
	return err
}

func (b *beginning) chat(ctx context.Context, s trackerService, a trackerAsk, key string) (err error) {
	project := cmp.Or(a.arg(0), firstProject)
	slug := cmp.Or(a.String(flagChat), project)
	b.Chat, err = makeOr(b, partChat, func() (tracker.ChatOut, error) {
		return s.CreateChat(ctx, tracker.CreateChat{Slug: slug, Project: project, IdempotencyKey: key})
	}, func() (tracker.ChatOut, error) { return s.GetChat(ctx, slug) })
	return err
}

// nextSteps are commands to go on with, as they can be typed here.
func (a trackerAsk) nextSteps(p tracker.ProjectOut) ([]string, error) {
	flags := a.typedFlags(flagState, flagConfig, flagURL, flagTokenFile)
	here := shellWord(a.p.name)
	ask := here + " tracker "
	next := []string{
		ask + "member create coder" + flags,
		ask + "task create " + shellWord(p.Slug) + ` "Say hello" --assignee coder` + flags,
	}
	if a.cfg.Tracker.URL != "" {
		return append(next, curlLine(a.cfg.Tracker.URL, a.cfg.Tracker.TokenFile, true)), nil
	}
	tokens, err := lookAt(a.ctx(), a.cfg, tokensPath, func(db *store.DB) ([]access.Token, error) { return db.Tokens(a.ctx()) })
	if err != nil {
		return nil, err
	}
	addr, secure := a.cfg.Addr, a.cfg.TLS.Cert != ""
	var who owner.Info
	if err := askOwner(a.ctx(), state{a.cfg.State}, aboutPath, &who); err == nil && who.Addr != "" {
		addr, secure = who.Addr, who.TLS
	} else {
		next = append(next, here+" serve"+a.typedFlags(flagState, flagConfig))
	}
	curl, token := curlLine(schemeOf(secure)+addr+trackerPath, "", len(tokens) > 0), ask+"token create coder"+a.typedFlags(flagState, flagConfig)+" > coder.token"
	if len(tokens) > 0 {
		return append(next, token, curl), nil
	}
	return append(next, curl, token), nil // from the first token on curl needs one
}

// curlLine lists tasks without hutch.
func curlLine(base, tokenFile string, token bool) string {
	line := "curl "
	if token {
		file := "TOKEN-FILE"
		if tokenFile != "" {
			file = shellWord(tokenFile)
		}
		line += `-H "Authorization: Bearer $(cat ` + file + `)" `
	}
	return line + shellWord(strings.TrimSuffix(base, "/")+"/tasks")
}

// typedFlags are flags as they were typed, for a command to come.
func (a trackerAsk) typedFlags(names ...string) (flags string) {
	for _, name := range names {
		if a.IsSet(name) {
			flags += " --" + name + " " + shellWord(a.String(name))
		}
	}
	return flags
}
