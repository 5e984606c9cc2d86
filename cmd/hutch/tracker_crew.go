package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
	"github.com/hutch-run/hutch/runtime/router"
	"github.com/hutch-run/hutch/runtime/session"
)

// crewGrace is how long turns may go on that run when hutch is to end; those that are left
// are begun again after the next start.
const crewGrace = grace - 2*time.Second

// A crew are the agents of this program that take part in a tracker.
//
// Goroutines are two for each of them while it runs, and those of its router.
type crew struct {
	mates []*mate
	log   *slog.Logger
}

// A mate is one of them.
type mate struct {
	slug   string
	agent  *engineAgent
	client *trackerclient.Client
	sub    *trackerclient.Subscription
	router *router.Router
	told   *metrics
	trail  *trail
	lang   string
	log    *slog.Logger

	mu   sync.Mutex
	link toldLink
}

// toldLink is how an agent is connected to its tracker, as others read it.
type toldLink struct {
	Agent string `json:"agent"`
	// Slug is its name in the tracker, Tracker where that is; empty is this program's own.
	Slug    string `json:"slug"`
	Tracker string `json:"tracker,omitempty"`
	// State is one of the states of a link, and Why the reason of one that is not good.
	State string    `json:"state"`
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since"`
	// Tasks are keys of those that are worked on.
	Tasks []string `json:"tasks,omitempty"`
}

// The states of a link.
const (
	linkConnecting = "connecting"
	linkConnected  = "connected"
	linkLost       = "lost"  // it is tried again
	linkEnded      = "ended" // it is not
)

// A seat is an agent's place in a tracker.
type seat struct {
	agent string
	// slug and name are what it is called there; empty is as it is here.
	slug, name string
	trackerClient
}

// trackerClient makes clients of a tracker.
type trackerClient func() (*trackerclient.Client, error)

// openCrew gives agents their places. Nothing is connected before it runs.
func (a *App) openCrew(seats []seat, shown *trail) (_ *crew, err error) {
	c := &crew{log: a.log}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for _, s := range seats {
		m, err := a.newMate(s, shown)
		if err != nil {
			return nil, fmt.Errorf("agent %s: %w", quoted(s.agent), err)
		}
		c.mates = append(c.mates, m)
	}
	return c, nil
}

// seats are those of all agents that were configured and listen to anything.
func (a *App) seats() (all []seat) {
	if a.cfg.agentsFrom == "" {
		return nil // what is there without a configuration is in no team
	}
	for _, cfg := range a.cfg.Agents {
		if cfg.Tracker.listens() {
			all = append(all, seat{agent: cfg.Name, trackerClient: func() (*trackerclient.Client, error) { return a.trackerOf(cfg.Name) }})
		}
	}
	return all
}

func (a *App) newMate(s seat, shown *trail) (*mate, error) {
	agent, ok := a.engine.named(s.agent)
	if !ok {
		return nil, errors.New("there is no such agent")
	}
	cfg := agent.cfg
	client, err := s.trackerClient()
	if err != nil {
		return nil, err
	}
	m := &mate{slug: cmp.Or(s.slug, s.agent), agent: agent, client: client, told: a.metrics, trail: shown, lang: cfg.Tracker.Lang, log: a.log.With("agent", s.agent)}
	m.link = toldLink{Agent: s.agent, Slug: m.slug, Tracker: a.cfg.Tracker.URL, State: linkConnecting, Since: time.Now()}
	m.router, err = router.New(router.Options{
		Agent: m.slug, Store: a.db, Turns: m, Tracker: client, Tools: m.tools, Lang: cfg.Tracker.Lang,
		TaskListen: router.Listen(cfg.Tracker.Tasks), ChatListen: router.Listen(cfg.Tracker.Chat),
		Capabilities: cfg.Tracker.Capabilities, Parallel: cfg.Tracker.Parallel, Logger: m.log, Trail: m.note,
	})
	if err != nil {
		client.Close()
		return nil, err
	}
	m.sub = client.Subscribe(trackerclient.Subscriber{
		Agent:  tracker.AuthAgent{Name: cmp.Or(s.name, s.agent), Slug: m.slug, Capabilities: append([]string{}, cfg.Tracker.Capabilities...)},
		Accept: m.router.Accept, State: m.router.State, Connected: m.connected, Lost: m.lost,
	})
	return m, nil
}

// Run has the agents work until ctx ends and their turns have, at most crewGrace later. An
// agent that its tracker does not want ends by itself, and the others go on; onEnd is told of
// it, or if that is nil the log.
func (c *crew) Run(ctx context.Context, onEnd func(*mate, error)) error {
	var all sync.WaitGroup
	var one sync.Mutex // of those that tell
	for _, m := range c.mates {
		all.Go(func() {
			err := <-launch(func() error { return m.run(ctx) })
			one.Lock()
			defer one.Unlock()
			switch {
			case ctx.Err() != nil:
			case onEnd != nil:
				onEnd(m, err)
			default:
				m.log.Error("an agent has left the tracker", "error", err)
			}
		})
	}
	all.Wait()
	return nil
}

// employ has the agents work, as soon as there are tools, until ctx ends; idle is closed when
// they have stopped.
func (a *App) employ(ctx context.Context, onEnd func(*mate, error)) (idle <-chan struct{}) {
	over := make(chan struct{})
	launch(func() error {
		defer close(over)
		if a.crew == nil {
			return nil
		}
		select {
		case <-a.ready:
			return a.crew.Run(ctx, onEnd)
		case <-ctx.Done():
			return nil
		}
	})
	return over
}

// run connects an agent and works off its inbox.
func (m *mate) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	routed := launch(func() error { return m.router.Run(ctx) })
	subscribed := launch(func() error { return m.sub.Run(ctx) })
	var err error
	select {
	case err = <-subscribed:
		subscribed <- nil
	case err = <-routed:
		routed <- nil
	}
	if ctx.Err() == nil {
		m.linkIs(linkEnded, err)
	}
	cancel()
	return errors.Join(err, unlessCut(<-routed), unlessCut(<-subscribed))
}

// close gives up what crew was opened with.
func (c *crew) close() {
	if c == nil {
		return
	}
	for _, m := range c.mates {
		m.client.Close()
	}
}

// connected is told by the subscription.
func (m *mate) connected(ctx context.Context, ok tracker.AuthOK) {
	m.linkIs(linkConnected, nil)
	m.router.Connected(ctx, ok)
}

func (m *mate) lost(why error) { m.linkIs(linkLost, why) }

// linkIs notes how the agent is connected.
func (m *mate) linkIs(state string, why error) {
	text := ""
	if why != nil {
		text = oneLine(why.Error())
	}
	m.mu.Lock()
	m.link.State, m.link.Why, m.link.Since = state, text, time.Now()
	m.mu.Unlock()
	what := trailConnected
	if state == linkConnected {
		m.log.Info("an agent is connected to its tracker", "member", m.slug)
	} else {
		what = trailLost
	}
	m.trail.tell(trailLine{Agent: m.agent.cfg.Name, What: what, Text: text})
}

// state is how the agent is connected, and what it does.
func (m *mate) state() toldLink {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.link
	l.Tasks = m.router.State().CurrentTasks
	return l
}

// links are those of all agents.
func (c *crew) links() []toldLink {
	all := []toldLink{}
	if c == nil {
		return all
	}
	for _, m := range c.mates {
		all = append(all, m.state())
	}
	return all
}

// note is told by the router.
func (m *mate) note(n router.Note) {
	m.trail.tell(trailLine{Agent: m.agent.cfg.Name, What: trailTask, Task: n.Item.Key, Title: n.Item.Title, Text: n.Text, Run: n.Item.RunID})
}

// tools are those that the agent has in its turns.
func (m *mate) tools() (all []router.Tool) {
	c := tool.Caller{Principal: access.Local, Agent: m.agent.cfg.Name, CallID: "tools", Face: faceTracker, Asks: true}
	for _, s := range m.agent.tools.List(c) {
		all = append(all, router.Tool{Name: s.Name, Description: s.Description})
	}
	return all
}

// Run implements [router.Turns].
func (m *mate) Run(ctx context.Context, t router.Turn) (err error) {
	about := trailLine{Agent: m.agent.cfg.Name, Task: t.Task.Key, Thread: t.Thread, Run: t.RunID}
	if m.ran(ctx, t) {
		return nil
	}
	defer func() { m.told.turned(m.agent.cfg.Name, err) }()
	late, stop := afterwards(ctx, crewGrace)
	defer stop()
	end, err := m.agent.turn(late, agentTurn{Thread: t.Thread, RunID: t.RunID, Title: t.Title, Prompt: t.Text}, m.trail.turn(about))
	switch {
	case errors.Is(err, session.ErrBusy):
		return fmt.Errorf("%w: %w", router.ErrNotBegun, err)
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case err == nil && len(end.Asks) > 0:
		about.Thread = end.Thread
		m.waits(late, about, t, end.Asks)
	}
	return err
}

// ran reports whether a turn for the same item has ended well before, of which the inbox
// was not told because the program died.
func (m *mate) ran(ctx context.Context, t router.Turn) bool {
	if !t.Item.Interrupted {
		return false
	}
	who := session.Principal{Name: access.Local}
	runs, err := m.agent.keeper.Runs(ctx, who, session.Ref{Owner: who.Name, ID: m.agent.threadOf(ctx, who, t.Thread)}, lastRuns)
	if err != nil {
		return false // there is no such thread
	}
	of := t.RunID[:strings.LastIndexByte(t.RunID, '-')+1]
	for _, r := range runs {
		if strings.HasPrefix(r.ID, of) && r.Status == session.Finished {
			return true
		}
	}
	return false
}

// lastRuns is how many runs of a thread are looked at.
const lastRuns = 20

// waits says at the task that a person has to decide: it goes on in the thread when one has.
func (m *mate) waits(ctx context.Context, about trailLine, t router.Turn, asks []event.Interrupt) {
	about.What, about.Text = trailWaiting, waitsFor(asks)
	m.trail.tell(about)
	_, err := m.client.SendMessage(ctx, tracker.SendMessage{
		TaskID: t.Task.ID, Content: waitingComment(m.lang, m.agent.cfg.Name, about.Thread, asks), IdempotencyKey: "waiting-" + t.RunID,
	})
	if err != nil {
		m.log.Warn("nobody was told at the task that a person has to decide", "task", t.Task.Key, "error", err)
	}
}

// waitingComment is what people read at a task whose agent waits for one of them.
func waitingComment(lang, agent, thread string, asks []event.Interrupt) string {
	head, tail := "I cannot go on: a person has to decide.", "To answer, type:"
	if lang == "ru" {
		head, tail = "Не могу продолжить: решение за человеком.", "Чтобы ответить, наберите:"
	}
	text := head + "\n"
	for _, a := range asks {
		text += "\n- " + oneLine(a.Message)
	}
	return fmt.Sprintf("%s\n\n%s\n\n    hutch chat --%s %s --%s %s\n", text, tail, flagAgent, shellWord(agent), flagThread, shellWord(thread))
}

// afterwards is a context that ends so long after another, or with stop.
func afterwards(ctx context.Context, later time.Duration) (_ context.Context, stop func()) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	end := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(later)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-late.Done():
		}
	})
	return late, func() { end(); cancel() }
}
