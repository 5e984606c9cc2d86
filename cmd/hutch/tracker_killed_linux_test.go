package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
)

// A mortal is a tracker of its own process that is killed while people give tasks to an agent,
// which is told of them over its socket.
type mortal struct {
	*testing.T
	dir, addr string
	env       []string
	tokens    map[string]string
	p         *process

	mu   sync.Mutex
	told map[string]string   // what was made, by the key it was asked under: the task's id
	had  map[string][]string // ids of events that the agent accepted, by task
}

func (m *mortal) prepared(args ...string) *process {
	m.Helper()
	p := prepared(m.T, m.dir, args...)
	p.Env = append(p.Env, m.env...)
	return p
}

// begin starts the tracker where it was before.
func (m *mortal) begin() {
	m.Helper()
	m.p = m.prepared("tracker", "--addr", m.addr)
	m.p.begin(m.T)
	m.addr = m.p.says(m.T, `^hutch: serving a tracker at http://([0-9.:]+),`)
	go func(r io.Reader) { _, _ = io.Copy(io.Discard, r) }(m.p.errors) // until it ends
}

// kill ends it as kill -9 does.
func (m *mortal) kill() {
	_ = m.p.Process.Kill()
	_ = m.p.Wait() // it says that it was killed
}

func (m *mortal) client(slug string) *trackerclient.Client {
	m.Helper()
	c, err := trackerclient.New("http://"+m.addr+trackerPath, m.tokens[slug], trackerclient.Options{Timeout: 10 * time.Second})
	must(m.T, err)
	m.Cleanup(c.Close)
	return c
}

// gives makes tasks, each under a key of its own and until that was answered.
func (m *mortal) gives(ctx context.Context, c *trackerclient.Client, who int) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%d-%d", who, n)
		for {
			task, err := c.CreateTask(ctx, tracker.CreateTask{Project: "test", Title: key, AssigneeSlug: "coder", IdempotencyKey: key})
			if err == nil {
				m.mu.Lock()
				m.told[key] = task.ID
				m.mu.Unlock()
				break
			}
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// accept notes an event, which is acknowledged then.
func (m *mortal) accept(_ context.Context, f tracker.EventFrame) error {
	var data struct{ Task tracker.TaskOut }
	if f.Event != tracker.EventTaskAssigned {
		return nil
	}
	if err := json.Unmarshal(f.Data, &data); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.had[data.Task.ID] = append(m.had[data.Task.ID], f.ID)
	return nil
}

// awaits waits for something about what is known.
func (m *mortal) awaits(what string, is func() bool) {
	m.Helper()
	for end := time.Now().Add(patientFor); ; time.Sleep(20 * time.Millisecond) {
		m.mu.Lock()
		ok := is()
		m.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			m.Fatalf("no %s: %d tasks, events of %d", what, len(m.told), len(m.had))
		}
	}
}

// newMortal starts one with a project, a person and the agent.
func newMortal(t *testing.T, env ...string) *mortal {
	t.Helper()
	m := &mortal{T: t, dir: t.TempDir(), addr: "127.0.0.1:0", env: env, tokens: map[string]string{}, told: map[string]string{}, had: map[string][]string{}}
	for _, name := range []string{"ann", "coder"} {
		args := []string{"tokens", "create", name}
		for _, scope := range access.Scopes() {
			args = append(args, "--scope", scope)
		}
		out, err := m.prepared(args...).Output()
		must(t, err)
		m.tokens[name] = strings.TrimSpace(string(out))
	}
	m.begin()
	t.Cleanup(m.kill)
	ann := m.client("ann")
	_, err := ann.CreateProject(t.Context(), tracker.CreateProject{Slug: "test", Key: "TE"})
	must(t, err)
	_, err = ann.CreateMember(t.Context(), tracker.CreateMember{Slug: "coder", Kind: tracker.Agent})
	must(t, err)
	return m
}

// A tracker that is killed again and again while it is asked has every task that it answered
// with, once, and its agent has an event of each.
func TestH_03_ATrackerKilledUnderLoad(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { newMortal(t).lives() })
	t.Run("PostgreSQL", func(t *testing.T) { newMortal(t, envStoreURL+"="+server.Database(t)).lives() })
}

func (m *mortal) lives() {
	m.Helper()
	listening, leave := context.WithCancel(m.Context())
	left := make(chan error, 1)
	agent := m.client("coder").Subscribe(trackerclient.Subscriber{Agent: tracker.AuthAgent{Slug: "coder"}, Accept: m.accept})
	go func() { left <- agent.Run(listening) }()
	giving, enough := context.WithCancel(m.Context())
	ann := m.client("ann")
	var givers sync.WaitGroup
	for who := range 4 {
		givers.Go(func() { m.gives(giving, ann, who) })
	}
	for round := 1; round <= 3; round++ {
		m.awaits("load", func() bool { return len(m.told) >= 40*round && len(m.had) >= 20*round })
		m.kill()
		m.begin()
	}
	m.awaits("load", func() bool { return len(m.told) >= 160 })
	enough()
	givers.Wait()
	m.awaits("event of each", func() bool {
		for _, id := range m.told {
			if len(m.had[id]) == 0 {
				return false
			}
		}
		return true
	})
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		m.Errorf("it listened until %v", err)
	}
	m.verify(ann)
}

// verify wants each task that was answered with, and of each one event.
func (m *mortal) verify(ann *trackerclient.Client) {
	m.Helper()
	for key, id := range m.told {
		if task, err := ann.GetTask(m.Context(), id); err != nil || task.Title != key {
			m.Errorf("%s was made as %s: %+v, %v", key, id, task, err)
		}
	}
	titles := map[string]bool{}
	for q := (tracker.TaskQuery{Paging: tracker.Paging{Limit: tracker.MaxPage}}); ; {
		page, err := ann.ListTasks(m.Context(), q)
		must(m.T, err)
		for _, task := range page.Items {
			if titles[task.Title] {
				m.Errorf("%s was made twice", task.Title)
			}
			titles[task.Title] = true
			if ids := m.had[task.ID]; len(ids) > 1 {
				m.Errorf("of %s it had the events %q", task.Title, ids)
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return
		}
	}
}
