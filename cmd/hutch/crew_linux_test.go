package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
)

// A team is a serve as a user has it, whose agents take part in its tracker, and a person
// who gives them tasks.
type team struct {
	*realServe
	*trackerclient.Client
}

// compilesFor is how long anything may take for which modules may have to be compiled first.
const compilesFor = 5 * time.Minute

// newTeam starts a serve with these files, of which hutch.yaml is the configuration.
func newTeam(t *testing.T, files map[string]string, env ...string) *team {
	t.Helper()
	if _, ok := files["policy.yaml"]; !ok {
		files["policy.yaml"] = "version: 1\n"
	}
	m := &team{realServe: newRealServe(t, files)}
	m.env = env
	warm.lend(t, filepath.Join(m.dir, "state"))
	t.Cleanup(func() { warm.keep(filepath.Join(m.dir, "state")) })
	m.begin()
	_, err := m.CreateProject(t.Context(), tracker.CreateProject{Slug: "test", Key: "TE"})
	must(t, err)
	return m
}

// begin starts serve on what is there.
func (m *team) begin() {
	m.t.Helper()
	m.start()
	c, err := trackerclient.New(m.url+trackerPath, "", trackerclient.Options{})
	must(m.t, err)
	m.t.Cleanup(c.Close)
	m.Client = c
}

// stop ends serve as a first Ctrl-C does, and returns how long that took.
func (m *team) stop() time.Duration {
	m.t.Helper()
	begun := time.Now()
	must(m.t, m.cmd.Process.Signal(os.Interrupt))
	<-m.log.over
	if err := m.cmd.Wait(); err != nil {
		m.t.Errorf("it ended with %v", err)
	}
	return time.Since(begun)
}

// gives makes a task for a member.
func (m *team) gives(title, slug string) tracker.TaskOut {
	m.t.Helper()
	task, err := m.CreateTask(m.t.Context(), tracker.CreateTask{Project: "test", Title: title, Description: "To be, or not to be.", AssigneeSlug: slug})
	must(m.t, err)
	return task
}

// sees waits until a task is as is says, and returns it.
func (m *team) sees(task, what string, is func(tracker.TaskOut) bool) tracker.TaskOut {
	m.t.Helper()
	var last tracker.TaskOut
	m.await(what, func() bool {
		var err error
		last, err = m.GetTask(m.t.Context(), task)
		return err == nil && is(last)
	}, func() string { return fmt.Sprintf("%+v", last) })
	return last
}

// await waits until something is so.
func (m *team) await(what string, is func() bool, last func() string) {
	m.t.Helper()
	for end := time.Now().Add(compilesFor); ; time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("never came: %s; last %s", what, last())
		}
	}
}

func has(status tracker.Status) func(tracker.TaskOut) bool {
	return func(t tracker.TaskOut) bool { return t.Status == status }
}

// comments are what was written at a task, without what the tracker itself wrote.
func (m *team) comments(task string) (texts []string) {
	m.t.Helper()
	page, err := m.ListMessages(m.t.Context(), tracker.MessageQuery{TaskID: task})
	must(m.t, err)
	for _, c := range page.Items {
		if !c.System {
			texts = append(texts, c.AuthorSlug+": "+c.Content)
		}
	}
	return texts
}

// toldThread is what a face tells of a thread.
type toldThread struct {
	Messages   []struct{ Role, Content string }
	Interrupts []event.Interrupt
}

// thread is that of an agent about a task.
func (m *team) thread(agent string, task tracker.TaskOut) (told toldThread) {
	m.t.Helper()
	status, body := m.reads("/agents/" + agent + "/agui/threads/task:" + task.ID)
	if status != http.StatusOK || json.Unmarshal(body, &told) != nil {
		m.t.Fatalf("%d: %s", status, body)
	}
	return told
}

// reads asks serve for something.
func (m *team) reads(path string) (status int, body []byte) {
	m.t.Helper()
	r, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, m.url+path, nil)
	must(m.t, err)
	resp, err := oneShot().Do(r)
	must(m.t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read only
	body, err = io.ReadAll(resp.Body)
	must(m.t, err)
	return resp.StatusCode, body
}

// figure is one of /metrics, "" if there is none.
func (m *team) figure(name string) string {
	m.t.Helper()
	_, body := m.reads("/metrics")
	for line := range strings.Lines(string(body)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// says runs another command beside serve.
func (m *team) says(args ...string) (string, error) {
	cmd := exec.CommandContext(m.t.Context(), m.program, append(args, "--config", "hutch.yaml", "--policy", "policy.yaml", "--state", "state", "--tools", "tools")...)
	cmd.Dir, cmd.Env = m.dir, append([]string{"HOME=" + m.dir}, m.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// prompts are what an agent was told about a task, as its thread has it.
func (m *team) prompts(agent string, task tracker.TaskOut) (prompts []string) {
	m.t.Helper()
	for _, message := range m.thread(agent, task).Messages {
		if message.Role == "user" {
			prompts = append(prompts, message.Content)
		}
	}
	return prompts
}

// teamFiles are those of the team that is shown as an example.
func teamFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"hutch.yaml", "coder.yaml"} {
		body, err := os.ReadFile(filepath.Join("..", "..", "examples", "team", name))
		must(t, err)
		files[name] = string(body)
	}
	return files
}

// S1-077, S1-081, S1-082: an agent does the full cycle with the tools that are shipped: it
// takes its task, adds steps, changes its status and comments.
func TestS1_081_TheFullCycleByAnAgent(t *testing.T) {
	for _, engine := range []string{"SQLite", "PostgreSQL"} {
		t.Run(engine, func(t *testing.T) {
			var env []string
			if engine == "PostgreSQL" {
				env = []string{envStoreURL + "=" + server.Database(t)}
			}
			m := newTeam(t, teamFiles(t), env...)
			task := m.gives("Count the words", "coder")
			task = m.sees(task.ID, "a review", has(tracker.InReview))
			if task.StepsDone != 3 || task.StepsTotal != 3 || *task.AssigneeSlug != "coder" {
				t.Errorf("left as %+v", task)
			}
			steps, err := m.ListSteps(t.Context(), task.ID)
			must(t, err)
			if len(steps) != 3 || steps[0].Title != "Read the task" || steps[2].DoneBy.Slug != "coder" {
				t.Errorf("steps %+v", steps)
			}
			if got := m.comments(task.ID); len(got) != 1 || !strings.HasPrefix(got[0], "coder: Title and text of this task have ") {
				t.Errorf("comments %q", got)
			}
			files, err := m.ListFiles(t.Context(), tracker.FileQuery{TaskID: task.ID})
			must(t, err)
			if len(files.Items) != 1 {
				t.Fatalf("files %+v", files.Items)
			}
			file, err := m.DownloadFile(t.Context(), files.Items[0].ID)
			must(t, err)
			if text := string(file.Content); !strings.HasPrefix(text, "# TE-1: Count the words\n\n- words: 9\n") {
				t.Errorf("the report is %q", text)
			}
			trail, err := m.TaskActivity(t.Context(), task.ID, tracker.Paging{})
			must(t, err)
			for _, a := range trail.Items {
				if a.Actor.Slug != "coder" && a.Action != "created" && a.Action != "assigned" {
					t.Errorf("%s did %s", a.Actor.Slug, a.Action)
				}
			}
			if got := m.prompts("coder", task); len(got) != 1 {
				t.Errorf("prompts %q", got)
			}
		})
	}
}

// quickScript is what agents do that do as little as can be. Some titles say what is to go
// wrong.
const quickScript = `
- match: {role: tool, result: '^\{"error"'}
  fail: {text: "a tool answered: ${result.error.message}"}
- match: {tool: update_task}
  say: "Done."
- match: {tool: add_comment}
  delay: 10m
- match: {tool: take_task, result: '"title": ?"stay'}
  delay: 10m
- match: {tool: take_task}
  call: {tool: update_task, args: {task_id: "${result.id}", status: in_review}}
- match: {text: '(?m)^# Task: (?P<key>[A-Z]+-[0-9]+) — fail'}
  fail: {as: unavailable, text: "the model is out of tokens"}
- match: {text: '(?m)^# Task: (?P<key>[A-Z]+-[0-9]+) — hold'}
  delay: 10m
- match: {text: '(?s)^# Task: (?P<key>[A-Z]+-[0-9]+) — once.*was interrupted'}
  call: {tool: take_task, args: {task_id: "${key}"}}
- match: {text: '(?m)^# Task: (?P<key>[A-Z]+-[0-9]+) — once'}
  call: {tool: add_comment, args: {task_id: "${key}", content: begun}}
- match: {text: '(?m)^# Task: (?P<key>[A-Z]+-[0-9]+)'}
  call: {tool: take_task, args: {task_id: "${key}"}}
- say: "?"
`

func quickTeam() map[string]string {
	return map[string]string{
		"quick.yaml": quickScript,
		"hutch.yaml": "agents:\n" +
			"  coder: {default: true, model: {kind: script, script: quick.yaml}, limits: {tool_timeout: 5m}}\n" +
			"  tester: {model: {kind: script, script: quick.yaml}, limits: {tool_timeout: 5m}}\n" +
			"  idle: {model: {kind: script, script: quick.yaml}, tracker: {tasks: none, chat: none}}\n",
	}
}

// Two agents each work on their own tasks, and one that listens to nothing on none. Of a
// task whose model fails people read why, and it is free again (E1-12).
func TestE1_12_AgentsOfATeamWorkAndFail(t *testing.T) {
	m := newTeam(t, quickTeam())
	a, b, idle, fails := m.gives("one", "coder"), m.gives("two", "tester"), m.gives("three", "idle"), m.gives("fail", "coder")
	m.sees(a.ID, "a review", has(tracker.InReview))
	m.sees(b.ID, "a review", has(tracker.InReview))
	m.sees(fails.ID, "a free task", func(t tracker.TaskOut) bool { return t.Status == tracker.Todo && t.AssigneeSlug == nil })
	m.await("a comment", func() bool { return len(m.comments(fails.ID)) > 0 }, func() string { return "none" })
	if got := m.comments(fails.ID); len(got) != 1 || !strings.HasPrefix(got[0], "coder: I could not finish this: ") || !strings.Contains(got[0], "the model is out of tokens") {
		t.Errorf("comments %q", got)
	}
	for agent, task := range map[string]tracker.TaskOut{"coder": a, "tester": b} {
		if got := m.prompts(agent, task); len(got) != 1 || !strings.HasPrefix(got[0], "# Task: "+task.Key) {
			t.Errorf("%s: prompts %q", agent, got)
		}
	}
	if got, err := m.GetTask(t.Context(), idle.ID); err != nil || got.Status != tracker.Todo {
		t.Errorf("a task of one that listens to nothing: %+v, %v", got, err)
	}
	// What an agent rejects or fails at, another may be given.
	must(t, m.hands(fails.ID, "tester"))
	m.await("another comment", func() bool { return len(m.comments(fails.ID)) == 2 }, func() string { return strings.Join(m.comments(fails.ID), "; ") })
}

// hands gives a task to a member.
func (m *team) hands(task, slug string) error {
	_, err := m.UpdateTask(m.t.Context(), task, tracker.UpdateTask{AssigneeSlug: tracker.Some(slug)})
	return err
}

// E0-4, E1-3: what an agent was about when hutch was killed is begun once more, in the same
// conversation, with a prompt that says so; hutch itself repeats no call. The second time it
// fails, and the task is free.
func TestE1_03_KilledInATurn(t *testing.T) {
	m := newTeam(t, quickTeam())
	once, twice := m.gives("once", "coder"), m.gives("stay", "tester")
	m.await("a comment", func() bool { return len(m.comments(once.ID)) == 1 }, func() string { return "none" })
	m.sees(twice.ID, "work", has(tracker.InProgress))
	m.kill()
	m.begin()
	m.sees(once.ID, "a review", has(tracker.InReview))
	m.await("a second prompt", func() bool { return len(m.prompts("tester", twice)) == 2 }, func() string { return strings.Join(m.prompts("tester", twice), "; ") })
	if got := m.comments(once.ID); len(got) != 1 {
		t.Errorf("the comment was made again: %q", got)
	}
	for agent, task := range map[string]tracker.TaskOut{"coder": once, "tester": twice} {
		if got := m.prompts(agent, task); len(got) != 2 || strings.Contains(got[0], "was interrupted") || !strings.Contains(got[1], "was interrupted") {
			t.Errorf("%s: prompts %q", agent, got)
		}
	}
	m.kill()
	m.begin()
	m.sees(twice.ID, "a free task", func(t tracker.TaskOut) bool { return t.Status == tracker.Todo && t.AssigneeSlug == nil })
	m.await("a comment", func() bool { return len(m.comments(twice.ID)) == 1 }, func() string { return "none" })
	if got := m.comments(twice.ID)[0]; !strings.Contains(got, "ended during the work, twice") {
		t.Errorf("comment %q", got)
	}
	if a, b := m.prompts("coder", once), m.prompts("tester", twice); len(a) != 2 || len(b) != 2 {
		t.Errorf("prompts %q and %q", a, b)
	}
}

// At the end turns have a moment; those that are left are begun again after the next start,
// which is no failure of theirs however often it happens.
func TestTurnsThatAServeEndsIn(t *testing.T) {
	m := newTeam(t, quickTeam())
	stays := m.gives("stay", "coder")
	m.sees(stays.ID, "work", has(tracker.InProgress))
	for n := range 3 {
		if took := m.stop(); took < crewGrace || took > 10*grace {
			t.Errorf("it took %v to end", took)
		}
		m.begin()
		m.await("one more prompt", func() bool { return len(m.prompts("coder", stays)) == n+2 }, func() string { return fmt.Sprint(len(m.prompts("coder", stays))) })
	}
	if got, err := m.GetTask(t.Context(), stays.ID); err != nil || got.Status != tracker.InProgress || len(m.comments(stays.ID)) > 0 {
		t.Errorf("left as %+v, %v", got, err)
	}
}

// A tool that needs a person's yes ends the turn with a comment that says how to answer; the
// answer has the agent go on with its task.
func TestAgentsThatNeedAPerson(t *testing.T) {
	files := teamFiles(t)
	files["policy.yaml"] = "version: 1\nmodules:\n  text.wasm:\n    tools: {text_stats: {approval: ask}}\n"
	m := newTeam(t, files)
	task := m.gives("Count the words", "coder")
	m.await("a comment", func() bool { return len(m.comments(task.ID)) == 1 }, func() string { return "none" })
	comment := m.comments(task.ID)[0]
	for _, want := range []string{"coder: I cannot go on: a person has to decide.", "text_stats", "hutch chat --agent coder --thread task:" + task.ID} {
		if !strings.Contains(comment, want) {
			t.Errorf("no %q in %q", want, comment)
		}
	}
	if got := m.sees(task.ID, "work", has(tracker.InProgress)); *got.AssigneeSlug != "coder" {
		t.Errorf("left as %+v", got)
	}
	asked := m.thread("coder", task).Interrupts
	if len(asked) != 1 {
		t.Fatalf("questions %+v", asked)
	}
	yes := newTurn("task:"+task.ID, "yes", "")
	yes.resume = fmt.Sprintf(`,"resume":[{"interruptId":%q,"status":"resolved","payload":{"approved":true}}]`, asked[0].ID)
	yes.send(t.Context(), m.url, func(string) {})
	m.sees(task.ID, "a review", has(tracker.InReview))
	if got := m.comments(task.ID); len(got) != 2 {
		t.Errorf("comments %q", got)
	}
}

// How agents are connected, and what they did, is seen from outside.
func TestAgentsOfATeamAreSeen(t *testing.T) {
	m := newTeam(t, quickTeam())
	done, stays := m.gives("one", "coder"), m.gives("stay", "tester")
	m.sees(done.ID, "a review", has(tracker.InReview))
	m.sees(stays.ID, "work", has(tracker.InProgress))
	figures := map[string]string{
		`hutch_tracker_agent_connected{agent="coder"}`:            "1",
		`hutch_tracker_agent_connected{agent="tester"}`:           "1",
		`hutch_tracker_tasks_running{agent="tester"}`:             "1",
		`hutch_tracker_turns_total{agent="coder",status="done"}`:  "1",
		`hutch_tracker_agent_connected{agent="idle"}`:             "",
		`hutch_tracker_turns_total{agent="tester",status="done"}`: "",
	}
	for name, want := range figures {
		m.await(name, func() bool { return m.figure(name) == want }, func() string { return m.figure(name) })
	}
	out, err := m.says("doctor")
	if !regexp.MustCompile(`(?m)^ok +agent coder +connected$`).MatchString(out) || !regexp.MustCompile(`(?m)^ok +agent tester +connected, working on TE-2$`).MatchString(out) || strings.Contains(out, "agent idle") {
		t.Errorf("doctor says %v\n%s", err, out)
	}
}
