package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/mcp"
	"github.com/hutch-run/hutch/protocol/trackerclient"
	"github.com/hutch-run/hutch/runtime/owner"
)

const flagFile = "file"

func agentCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "agent",
		Usage:     "run one agent as a member of a tracker elsewhere",
		UsageText: "hutch agent [NAME] [flags]",
		Flags: append(folderFlags(), identityFlag(), unattendedFlag(),
			&cli.StringFlag{Name: flagFile, Usage: "`FILE`: an agent.json with who it is there (default: the configuration says it)"},
			jsonFlag("what happens, one thing a line,"), logFlag("error")),
		Action: func(c *cli.Context) error { return attended(c, p, runAgent) },
		Description: `NAME is an agent of the configuration; without it, it is the default one. It connects to the tracker of
tracker.url with the token that is configured there, works on the tasks that are assigned to it, and prints a
line for each thing that it does. It ends with the first interrupt, once what it does is done or 3s have passed;
what is not done then is begun again after the next start.

An agent.json may say in place of the configuration: slug, name, token, tracker_url, capabilities, task_listen
(` + strings.Join(taskListens(), ", ") + `), chat_listen or listen (` + strings.Join(chatListens(), ", ") + `). One with a token has to be yours alone.
"hutch serve" runs all agents of its configuration, with the tracker that it has or the one of tracker.url.

examples:
  $ hutch agent coder --config hutch.yaml
  $ hutch agent --file agent.json --json`,
	}
}

func runAgent(c *cli.Context, p program, say *voice) error {
	if err := wantArgs(c, 0, 1, "at most one NAME"); err != nil {
		return err
	}
	cfg, err := loadConfig(c, p)
	if err != nil {
		return err
	}
	who, err := cfg.seatOf(c.Args().First(), c.String(flagFile), say)
	if err != nil {
		return err
	}
	return cfg.owning(c, p, say, func(app *App, o *owner.Owner) error {
		who.trackerClient = func() (*trackerclient.Client, error) { return app.trackerOf(who.agent) }
		shown := &trail{out: c.App.Writer, json: c.Bool(flagJSON), now: time.Now}
		var err error
		if app.crew, err = app.openCrew([]seat{who}, shown); err != nil {
			return err
		}
		say.line("%s works with the tracker at %s", who.agent, cfg.Tracker.URL)
		return app.work(c.Context, o)
	})
}

// seatOf is the place of an agent in the tracker elsewhere, as the configuration and an
// agent.json say; what the file says goes before.
func (cfg *Config) seatOf(name, file string, say *voice) (s seat, err error) {
	a, err := cfg.agentNamed(name)
	if err != nil {
		return s, err
	}
	s.agent = a.Name
	if file != "" {
		f, err := readAgentFile(file)
		if err != nil {
			return s, err
		}
		for _, key := range f.unknown {
			say.line("warning: agent file %s: %s means nothing to hutch", quoted(file), quoted(key))
		}
		s.slug, s.name = f.Slug, f.Name
		cfg.take(a, f)
	}
	switch {
	case cfg.Tracker.URL == "":
		return s, usagef("there is no tracker to work with: %s is not set", keyTrackerURL).withHint("name one in the configuration or as tracker_url in --%s, or use \"hutch serve\", whose agents work with its own", flagFile)
	case !a.Tracker.listens():
		return s, usagef("agent %s: it listens to neither tasks nor chats, so there is nothing for it to do", quoted(a.Name))
	}
	return s, checkSlug(cmp.Or(s.slug, s.agent))
}

// agentNamed is an agent of the configuration, or the default one.
func (cfg *Config) agentNamed(name string) (*agentConfig, error) {
	if name == "" {
		return cfg.Agents[0], nil
	}
	names := make([]string, len(cfg.Agents))
	for i, a := range cfg.Agents {
		if names[i] = a.Name; a.Name == name {
			return a, nil
		}
	}
	return nil, usagef("there is no agent %s: there are %s", quoted(name), oneLine(strings.Join(names, ", ")))
}

// take has what an agent.json says in place of what was configured.
func (cfg *Config) take(a *agentConfig, f agentFile) {
	cfg.Tracker.URL = cmp.Or(f.TrackerURL, cfg.Tracker.URL)
	a.Tracker.Tasks, a.Tracker.Chat = cmp.Or(f.Tasks, a.Tracker.Tasks), cmp.Or(f.Chat, a.Tracker.Chat)
	if f.Capabilities != nil {
		a.Tracker.Capabilities = f.Capabilities
	}
	if f.Token.Reveal() != "" {
		a.Tracker.Token = f.Token
	}
}

// work runs the app for its agents until ctx ends, or until none of them is wanted, which is
// an error. Others may talk to it on the owner's socket meanwhile.
func (a *App) work(ctx context.Context, o *owner.Owner) error {
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	working, stop := context.WithCancel(ctx)
	defer stop()
	face, people := mcp.New(a.waiting(), a.mcpOptions()), a.newAGUI()
	watched := launch(func() error { a.Run(working); return nil })
	controlled := launch(func() error { return o.Serve(base, a.control(face, people, o.Info(), nil), a.log) })
	var gone []error // written by the crew, read once it is idle
	idle := a.employ(working, func(m *mate, err error) { gone = append(gone, leaving(m.slug, err)) })
	var err error
	select {
	case <-idle:
	case err = <-watched:
		watched <- nil
	case <-ctx.Done():
	}
	stop()
	late, cancel := context.WithTimeout(base, grace)
	defer cancel()
	awaitClosed(late, idle)
	ran := launch(func() error { return people.shutdown(late) })
	err = errors.Join(err, unlessCut(face.Shutdown(late)), unlessCut(<-ran))
	end()
	return errors.Join(err, <-watched, <-controlled, errors.Join(gone...))
}

// leaving says why an agent left its tracker, and what to do.
func leaving(slug string, err error) error {
	switch {
	case errors.Is(err, trackerclient.ErrSuperseded):
		return hinted(fmt.Errorf("%s: %w", slug, err), "end the other one, or make a member of the tracker for this one")
	case errors.Is(err, trackerclient.ErrRejected):
		return hinted(fmt.Errorf("%s: %w", slug, err), "the token has to be that of the member %s: whoever runs the tracker makes one with \"hutch tracker token create %s\"", slug, shellWord(slug))
	}
	return fmt.Errorf("%s: %w", slug, err)
}
