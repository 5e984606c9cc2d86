package boardtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
)

// Store is what every store must do. open returns an empty one.
func Store(t *testing.T, open func(*testing.T) board.Store) {
	for name, test := range map[string]func(*testing.T, board.Store){
		"projects": projects, "members": members, "chats": chats, "tasks": tasks, "one task": oneTask, "steps": steps,
		"messages": messages, "attachments": attachments, "activity": activity, "answers": answers, "queues": queues,
		"gone tasks": goneTasks, "failures": failures, "at once": atOnce, "odd texts": oddTexts, "reader's own": readersOwn,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// at is a time as a store must give it back: to the millisecond, UTC.
func at(n int) time.Time { return time.UnixMilli(1_760_000_000_000 + int64(n)).UTC() }

// id makes ids in order.
func id(n int) string { return fmt.Sprintf("01990000-0000-7000-8000-%012d", n) }

func keep(t *testing.T, s board.Store, c board.Change) {
	t.Helper()
	if err := s.UpdateBoard(t.Context(), func(board.Reader) (board.Change, error) { return c, nil }); err != nil {
		t.Fatal(err)
	}
}

// read returns what fn reads, both in a view and in an update.
func read[T any](t *testing.T, s board.Store, fn func(board.Reader) (T, error)) (out T, err error) {
	t.Helper()
	failed := s.ViewBoard(t.Context(), func(r board.Reader) error {
		out, err = fn(r)
		return nil
	})
	var again T
	var errAgain error
	if failed == nil {
		failed = s.UpdateBoard(t.Context(), func(r board.Reader) (board.Change, error) {
			again, errAgain = fn(r)
			return board.Change{}, nil
		})
	}
	if failed != nil {
		t.Fatal(failed)
	}
	if !reflect.DeepEqual(shape(out), shape(again)) || errors.Is(err, board.ErrNotFound) != errors.Is(errAgain, board.ErrNotFound) {
		t.Errorf("a view reads %v, %v, an update %v, %v", out, err, again, errAgain)
	}
	return out, err
}

// want reads what must be there.
func want[T any](t *testing.T, s board.Store, what string, wanted T, fn func(board.Reader) (T, error)) {
	t.Helper()
	got, err := read(t, s, fn)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if !reflect.DeepEqual(shape(got), shape(wanted)) {
		t.Errorf("%s: got\n%s, want\n%s", what, text(got), text(wanted))
	}
}

// missing reads what must not be there.
func missing[T any](t *testing.T, s board.Store, what string, fn func(board.Reader) (T, error)) {
	t.Helper()
	if got, err := read(t, s, fn); !errors.Is(err, board.ErrNotFound) {
		t.Errorf("%s: got %v, %v, want ErrNotFound", what, got, err)
	}
}

// shape is a value in which a list without elements and none are the same, as for a board.
func shape(v any) string { return text(v) }

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(replaceNull(raw))
}

func replaceNull(raw []byte) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	out, err := json.Marshal(denull(v))
	if err != nil {
		return raw
	}
	return out
}

func denull(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = denull(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = denull(v[k])
		}
	}
	return v
}

func ids[T any](all []T, of func(T) string) (out []string) {
	for _, v := range all {
		out = append(out, of(v))
	}
	return out
}

// lists checks queries by the names of what they find.
func lists[Q, T any](t *testing.T, s board.Store, query func(board.Reader, Q) ([]T, error), of func(T) string, cases map[string]struct {
	q    Q
	want []string
}) {
	t.Helper()
	for name, c := range cases {
		want(t, s, name, c.want, func(r board.Reader) ([]string, error) {
			all, err := query(r, c.q)
			return ids(all, of), err
		})
	}
}

type projectCases = map[string]struct {
	q    board.ProjectQuery
	want []string
}

func projects(t *testing.T, s board.Store) {
	a := board.Project{ID: id(1), Slug: "a", Key: "A", Name: "Имя", Description: "d\nd", LastNumber: 7, Created: at(1)}
	b := board.Project{ID: id(2), Slug: "b", Key: "B2", Name: "b", Archived: true, Created: at(2)}
	keep(t, s, board.Change{Projects: []board.Project{b, a, {ID: id(3), Slug: "c", Key: "C", Name: "c", Created: at(3)}}})
	for _, ref := range []string{a.ID, "a"} {
		want(t, s, ref, a, func(r board.Reader) (board.Project, error) { return r.Project(ref) })
	}
	for _, ref := range []string{"A", "", id(9)} {
		missing(t, s, ref, func(r board.Reader) (board.Project, error) { return r.Project(ref) })
	}
	lists(t, s, board.Reader.Projects, func(p board.Project) string { return p.Slug }, projectCases{
		"open":  {board.ProjectQuery{}, []string{"a", "c"}},
		"all":   {board.ProjectQuery{Archived: true}, []string{"a", "b", "c"}},
		"key":   {board.ProjectQuery{Archived: true, Key: "B2"}, []string{"b"}},
		"after": {board.ProjectQuery{After: "a", Archived: true, Limit: 1}, []string{"b"}},
	})
	a.Name, a.LastNumber = "other", 8
	keep(t, s, board.Change{Projects: []board.Project{a}})
	want(t, s, "changed", a, func(r board.Reader) (board.Project, error) { return r.Project("a") })
}

type memberCases = map[string]struct {
	q    board.MemberQuery
	want []string
}

func members(t *testing.T, s board.Store) {
	keep(t, s, board.Change{Projects: []board.Project{{ID: id(50), Slug: "p", Key: "P", Created: at(0)}}})
	a := board.Member{
		ID: id(1), Slug: "a", Name: "A", Kind: tracker.Agent, Capabilities: []string{"x", "y"}, Projects: []string{id(50)}, Status: "s",
		Busy: true, CurrentTasks: []string{"T-1"}, Online: true, Seen: at(10), Announce: true, Changed: at(20), Created: at(1),
	}
	b := board.Member{ID: id(2), Slug: "b", Name: "B", Kind: tracker.Human, Created: at(2)}
	c := board.Member{ID: id(3), Slug: "c", Name: "C", Kind: tracker.Agent, Archived: true, Projects: []string{id(51)}, Created: at(3)}
	keep(t, s, board.Change{Members: []board.Member{a, b, c}})
	want(t, s, "by slug", a, func(r board.Reader) (board.Member, error) { return r.Member("a") })
	want(t, s, "by id", b, func(r board.Reader) (board.Member, error) { return r.Member(id(2)) })
	missing(t, s, "nobody", func(r board.Reader) (board.Member, error) { return r.Member("A") })
	lists(t, s, board.Reader.Members, func(m board.Member) string { return m.Slug }, memberCases{
		"active":       {board.MemberQuery{}, []string{"a", "b"}},
		"all":          {board.MemberQuery{Archived: true}, []string{"a", "b", "c"}},
		"slugs":        {board.MemberQuery{Slugs: []string{"c", "a", "z"}, Archived: true}, []string{"a", "c"}},
		"no slugs":     {board.MemberQuery{Slugs: []string{}, Archived: true}, nil},
		"kind":         {board.MemberQuery{Kind: tracker.Agent}, []string{"a"}},
		"project":      {board.MemberQuery{Project: id(50), Archived: true}, []string{"a", "b"}},
		"unseen":       {board.MemberQuery{Unseen: at(11)}, []string{"a"}},
		"seen":         {board.MemberQuery{Unseen: at(10)}, nil},
		"to announce":  {board.MemberQuery{Announce: at(21)}, []string{"a"}},
		"not yet":      {board.MemberQuery{Announce: at(20)}, nil},
		"after, limit": {board.MemberQuery{After: "a", Archived: true, Limit: 1}, []string{"b"}},
	})
	a.Online, a.Announce, a.CurrentTasks, a.Capabilities = false, false, nil, []string{"z"}
	keep(t, s, board.Change{Members: []board.Member{a}})
	want(t, s, "changed", a, func(r board.Reader) (board.Member, error) { return r.Member("a") })
}

type chatCases = map[string]struct {
	q    board.ChatQuery
	want []string
}

func chats(t *testing.T, s board.Store) {
	a := board.Chat{ID: id(1), Slug: "a", Name: "A", Project: id(50), Members: []string{"x", "y"}, Created: at(1)}
	keep(t, s, board.Change{Chats: []board.Chat{a, {ID: id(2), Slug: "b", Name: "B", Created: at(2)}, {ID: id(3), Slug: "c", Name: "C", Archived: true, Created: at(3)}}})
	want(t, s, "by slug", a, func(r board.Reader) (board.Chat, error) { return r.Chat("a") })
	want(t, s, "by id", a, func(r board.Reader) (board.Chat, error) { return r.Chat(id(1)) })
	missing(t, s, "none", func(r board.Reader) (board.Chat, error) { return r.Chat("z") })
	cases := chatCases{
		"open":    {board.ChatQuery{}, []string{"a", "b"}},
		"all":     {board.ChatQuery{Archived: true}, []string{"a", "b", "c"}},
		"project": {board.ChatQuery{Project: id(50)}, []string{"a"}},
		"member":  {board.ChatQuery{Member: "y"}, []string{"a", "b"}},
		"other":   {board.ChatQuery{Member: "z"}, []string{"b"}},
		"after":   {board.ChatQuery{After: "a", Archived: true, Limit: 1}, []string{"b"}},
	}
	lists(t, s, board.Reader.Chats, func(c board.Chat) string { return c.Slug }, cases)
	a.Members = []string{"z"}
	keep(t, s, board.Change{Chats: []board.Chat{a}})
	cases = chatCases{"member": {board.ChatQuery{Member: "y"}, []string{"b"}}, "other": {board.ChatQuery{Member: "z"}, []string{"a", "b"}}}
	lists(t, s, board.Reader.Chats, func(c board.Chat) string { return c.Slug }, cases)
}

func task(n int, change func(*board.Task)) board.Task {
	t := board.Task{
		ID: id(n), Key: fmt.Sprint("P-", n), Number: int64(n), Project: id(50), Title: "title", Type: "task", Priority: "medium",
		Status: tracker.Todo, Creator: "ann", Version: 1, Created: at(n), Updated: at(n), Search: "p-" + fmt.Sprint(n) + "\ntitle\n",
	}
	if change != nil {
		change(&t)
	}
	return t
}

func oneTask(t *testing.T, s board.Store) {
	full := task(1, func(t *board.Task) {
		t.Parent, t.Description, t.Assignee = id(9), "d", "coder"
		t.Labels, t.Watchers, t.RejectedBy = []string{"l", "m"}, []string{"ann", "coder"}, []string{"x"}
		t.Blockers, t.OpenBlockers, t.StepsTotal, t.StepsDone = []string{id(8), id(7)}, 1, 3, 2
	})
	keep(t, s, board.Change{Tasks: []board.Task{full, task(2, nil)}})
	for _, ref := range []string{full.ID, full.Key} {
		want(t, s, ref, full, func(r board.Reader) (board.Task, error) { return r.Task(ref) })
	}
	for _, ref := range []string{"", "p-1", "P-3", "P-1' or 1=1 --"} {
		missing(t, s, ref, func(r board.Reader) (board.Task, error) { return r.Task(ref) })
	}
	full.Labels, full.Watchers, full.Blockers, full.OpenBlockers, full.Assignee = nil, []string{"ann"}, nil, 0, ""
	full.Status, full.Version, full.Updated = tracker.Done, 2, at(99)
	keep(t, s, board.Change{Tasks: []board.Task{full}})
	want(t, s, "changed", full, func(r board.Reader) (board.Task, error) { return r.Task(full.ID) })
}

type taskCases = map[string]struct {
	q    board.TaskQuery
	want []string
}

func tasks(t *testing.T, s board.Store) {
	keep(t, s, board.Change{Tasks: []board.Task{
		task(1, func(t *board.Task) { t.Labels, t.Type, t.Search = []string{"x", "y"}, "bug", "p-1\nодна 100% _a\n" }),
		task(2, func(t *board.Task) {
			t.Labels, t.Assignee, t.Priority, t.Watchers = []string{"x"}, "coder", "high", []string{"w"}
		}),
		task(3, func(t *board.Task) { t.Parent, t.Status, t.Creator = id(1), tracker.Backlog, "bob" }),
		task(4, func(t *board.Task) {
			t.Project, t.Number, t.Blockers, t.OpenBlockers = id(51), 1, []string{id(1), id(2)}, 2
		}),
	}})
	number := func(t board.Task) string { return t.Key }
	lists(t, s, board.Reader.Tasks, number, taskCases{
		"all":         {board.TaskQuery{}, []string{"P-4", "P-3", "P-2", "P-1"}},
		"before":      {board.TaskQuery{Before: id(4), Limit: 2}, []string{"P-3", "P-2"}},
		"ids":         {board.TaskQuery{IDs: []string{id(1), id(3), id(99)}}, []string{"P-3", "P-1"}},
		"no ids":      {board.TaskQuery{IDs: []string{}}, nil},
		"project":     {board.TaskQuery{Project: id(51)}, []string{"P-4"}},
		"statuses":    {board.TaskQuery{Statuses: []tracker.Status{tracker.Backlog, tracker.Done}}, []string{"P-3"}},
		"assignee":    {board.TaskQuery{Assignee: "coder"}, []string{"P-2"}},
		"unassigned":  {board.TaskQuery{Unassigned: true}, []string{"P-4", "P-3", "P-1"}},
		"label":       {board.TaskQuery{Labels: []string{"x"}}, []string{"P-2", "P-1"}},
		"labels":      {board.TaskQuery{Labels: []string{"y", "x"}}, []string{"P-1"}},
		"no label":    {board.TaskQuery{Labels: []string{"z"}}, nil},
		"type":        {board.TaskQuery{Type: "bug"}, []string{"P-1"}},
		"priority":    {board.TaskQuery{Priority: "high"}, []string{"P-2"}},
		"parent":      {board.TaskQuery{Parent: id(1)}, []string{"P-3"}},
		"creator":     {board.TaskQuery{Creator: "bob"}, []string{"P-3"}},
		"watcher":     {board.TaskQuery{Watcher: "w"}, []string{"P-2"}},
		"blocker":     {board.TaskQuery{Blocker: id(2)}, []string{"P-4"}},
		"number":      {board.TaskQuery{Number: 1}, []string{"P-4", "P-1"}},
		"number in":   {board.TaskQuery{Number: 1, Project: id(51)}, []string{"P-4"}},
		"text":        {board.TaskQuery{Text: "одна"}, []string{"P-1"}},
		"wildcard":    {board.TaskQuery{Text: "%"}, []string{"P-1"}},
		"underscore":  {board.TaskQuery{Text: "_"}, []string{"P-1"}},
		"quote":       {board.TaskQuery{Text: "'"}, nil},
		"unblocked":   {board.TaskQuery{Unblocked: true, Limit: 1}, []string{"P-3"}},
		"all of them": {board.TaskQuery{Project: id(50), Labels: []string{"x"}, Assignee: "coder", Unblocked: true, Text: "title"}, []string{"P-2"}},
	})
	changed := task(4, func(t *board.Task) { t.Labels, t.Watchers = []string{"y"}, []string{"v"} })
	keep(t, s, board.Change{Tasks: []board.Task{changed}})
	lists(t, s, board.Reader.Tasks, number, taskCases{
		"a new label":     {board.TaskQuery{Labels: []string{"y"}}, []string{"P-4", "P-1"}},
		"a new watcher":   {board.TaskQuery{Watcher: "v"}, []string{"P-4"}},
		"an old blocker":  {board.TaskQuery{Blocker: id(2)}, nil},
		"another project": {board.TaskQuery{Project: id(51)}, nil},
	})
}

func steps(t *testing.T, s board.Store) {
	keep(t, s, board.Change{Tasks: []board.Task{task(1, nil), task(2, nil)}})
	a := board.Step{ID: id(10), Task: id(1), Title: "a", Done: true, DoneAt: at(5), DoneBy: "coder"}
	b := board.Step{ID: id(11), Task: id(1), Position: 1, Title: "b"}
	keep(t, s, board.Change{Steps: []board.Step{b, a, {ID: id(12), Task: id(2), Title: "other"}}})
	of := func(r board.Reader) ([]board.Step, error) { return r.Steps(id(1)) }
	want(t, s, "steps", []board.Step{a, b}, of)
	a.Position, a.Done, a.DoneAt, a.DoneBy, b.Position = 1, false, time.Time{}, "", 0
	keep(t, s, board.Change{Steps: []board.Step{a, b}})
	want(t, s, "swapped", []board.Step{b, a}, of)
	a.Position = 0
	keep(t, s, board.Change{Steps: []board.Step{a}, GoneSteps: []string{b.ID}})
	want(t, s, "one left", []board.Step{a}, of)
}

type messageCases = map[string]struct {
	q    board.MessageQuery
	want []string
}

func messages(t *testing.T, s board.Store) {
	keep(t, s, board.Change{Tasks: []board.Task{task(1, nil)}})
	full := board.Message{ID: id(20), Chat: id(60), Author: "a", Content: "x\ny", Mentions: []string{"b", "a"}, Created: at(1)}
	comment := board.Message{ID: id(21), Task: id(1), Author: "a", Content: "c", System: true, Created: at(2)}
	keep(t, s, board.Change{Messages: []board.Message{full, comment, {ID: id(22), Chat: id(60), Parent: id(20), Author: "b", Content: "r", Created: at(3)}}})
	want(t, s, "one", []board.Message{full}, func(r board.Reader) ([]board.Message, error) {
		return r.Messages(board.MessageQuery{ID: full.ID})
	})
	want(t, s, "comment", []board.Message{comment}, func(r board.Reader) ([]board.Message, error) {
		return r.Messages(board.MessageQuery{Task: id(1)})
	})
	lists(t, s, board.Reader.Messages, func(m board.Message) string { return m.ID }, messageCases{
		"chat":   {board.MessageQuery{Chat: id(60)}, []string{id(22), id(20)}},
		"before": {board.MessageQuery{Chat: id(60), Before: id(22), Limit: 1}, []string{id(20)}},
		"parent": {board.MessageQuery{Parent: id(20)}, []string{id(22)}},
		"none":   {board.MessageQuery{Chat: id(61)}, nil},
		"limit":  {board.MessageQuery{Chat: id(60), Limit: 1}, []string{id(22)}},
	})
}

type attachmentCases = map[string]struct {
	q    board.AttachmentQuery
	want []string
}

func attachments(t *testing.T, s board.Store) {
	keep(t, s, board.Change{
		Tasks: []board.Task{task(1, nil)}, Messages: []board.Message{{ID: id(20), Chat: id(60), Author: "a", Content: "x", Created: at(1)}},
	})
	a := board.Attachment{ID: id(30), Filename: "ф.txt", MIME: "text/plain", Digest: "d1", Size: 2, Task: id(1), Project: id(50), Author: "a", Created: at(1)}
	b := board.Attachment{ID: id(31), Filename: "b", MIME: "x/y", Digest: "d1", Message: id(20), Author: "b", Created: at(2)}
	keep(t, s, board.Change{Attachments: []board.Attachment{a, b}, Blobs: []board.Blob{{Digest: "d1", Bytes: []byte("\x00x")}, {Digest: "d2", Bytes: []byte{}}}})
	want(t, s, "one", []board.Attachment{a}, func(r board.Reader) ([]board.Attachment, error) {
		return r.Attachments(board.AttachmentQuery{ID: a.ID})
	})
	want(t, s, "blob", []byte("\x00x"), func(r board.Reader) ([]byte, error) { return r.Blob("d1") })
	missing(t, s, "blob", func(r board.Reader) ([]byte, error) { return r.Blob("d3") })
	keep(t, s, board.Change{Blobs: []board.Blob{{Digest: "d1", Bytes: []byte("\x00x")}}})
	lists(t, s, board.Reader.Attachments, func(a board.Attachment) string { return a.ID }, attachmentCases{
		"task":       {board.AttachmentQuery{Task: id(1)}, []string{a.ID}},
		"project":    {board.AttachmentQuery{Project: id(50)}, []string{a.ID}},
		"messages":   {board.AttachmentQuery{Messages: []string{id(20), id(21)}}, []string{b.ID}},
		"no message": {board.AttachmentQuery{Messages: []string{}}, nil},
		"after":      {board.AttachmentQuery{After: a.ID}, []string{b.ID}},
		"limit":      {board.AttachmentQuery{Limit: 1}, []string{a.ID}},
	})
}

func activity(t *testing.T, s board.Store) {
	keep(t, s, board.Change{Tasks: []board.Task{task(1, nil)}})
	a := board.Activity{ID: id(40), Task: id(1), Actor: "a", Action: "created", At: at(1)}
	b := board.Activity{ID: id(41), Task: id(1), Actor: "a", Action: "updated", Changes: json.RawMessage(`{"title":{"from":"a","to":"b"}}`), At: at(2)}
	keep(t, s, board.Change{Activity: []board.Activity{a, b, {ID: id(42), Task: id(2), Actor: "a", Action: "created", At: at(3)}}})
	of := func(q board.ActivityQuery) func(board.Reader) ([]board.Activity, error) {
		return func(r board.Reader) ([]board.Activity, error) { return r.Activity(q) }
	}
	want(t, s, "all", []board.Activity{b, a}, of(board.ActivityQuery{Task: id(1)}))
	want(t, s, "before", []board.Activity{a}, of(board.ActivityQuery{Task: id(1), Before: id(41), Limit: 1}))
	want(t, s, "limit", []board.Activity{b}, of(board.ActivityQuery{Task: id(1), Limit: 1}))
	keep(t, s, board.Change{GoneTasks: []string{id(1)}})
	want(t, s, "of a task that is gone", []board.Activity{b, a}, of(board.ActivityQuery{Task: id(1)}))
}

func answers(t *testing.T, s board.Store) {
	a := board.Answer{Member: "a", Key: "k", Request: "r", Body: json.RawMessage(`{"x": 1}`), At: at(1)}
	keep(t, s, board.Change{Answers: []board.Answer{a, {Member: "b", Key: "k", Request: "s", Body: json.RawMessage(`{}`), At: at(9)}}})
	get := func(member string) func(board.Reader) (board.Answer, error) {
		return func(r board.Reader) (board.Answer, error) { return r.Answer(member, "k") }
	}
	want(t, s, "of a", a, get("a"))
	missing(t, s, "of c", get("c"))
	keep(t, s, board.Change{AnswersBefore: at(1)})
	want(t, s, "of a still", a, get("a"))
	keep(t, s, board.Change{AnswersBefore: at(2)})
	missing(t, s, "of a", get("a"))
	if _, err := read(t, s, get("b")); err != nil {
		t.Error("a later answer was forgotten:", err)
	}
}

type deliveryCases = map[string]struct {
	q    board.DeliveryQuery
	want []string
}

func queues(t *testing.T, s board.Store) {
	place := func(member string, n int64) board.Place { return board.Place{Member: member, Number: n} }
	keep(t, s, board.Change{Events: []board.Event{
		{ID: id(70), Name: "n", Data: json.RawMessage(`{"a":1}`), At: at(1), Places: []board.Place{place("a", 1), place("b", 1)}},
		{ID: id(71), Name: "m", Data: json.RawMessage(`{}`), At: at(2), Places: []board.Place{place("a", 2)}},
	}})
	count := func(r board.Reader) (map[string]board.Queue, error) { return r.Queues([]string{"a", "b", "c"}) }
	want(t, s, "queues", map[string]board.Queue{"a": {Last: 2, Count: 2}, "b": {Last: 1, Count: 1}}, count)
	first := board.Delivery{Place: place("a", 1), ID: id(70), Name: "n", Data: json.RawMessage(`{"a":1}`), At: at(1)}
	want(t, s, "the first", []board.Delivery{first}, func(r board.Reader) ([]board.Delivery, error) {
		return r.Deliveries(board.DeliveryQuery{Member: "a", Limit: 1})
	})
	first.Tries, first.Parked = 3, true
	keep(t, s, board.Change{Tried: []board.Delivery{first, {Place: place("z", 9), Tries: 1}}})
	of := func(d board.Delivery) string { return d.Member + fmt.Sprint(d.Number) }
	lists(t, s, board.Reader.Deliveries, of, deliveryCases{
		"to be sent": {board.DeliveryQuery{Member: "a"}, []string{"a2"}},
		"parked":     {board.DeliveryQuery{Member: "a", Parked: true}, []string{"a1"}},
		"any":        {board.DeliveryQuery{Any: true}, []string{"a1", "a2", "b1"}},
		"ids":        {board.DeliveryQuery{Member: "a", IDs: []string{id(70), id(99)}, Any: true}, []string{"a1"}},
		"ids of all": {board.DeliveryQuery{IDs: []string{id(70), id(99)}, Any: true}, []string{"a1", "b1"}},
		"no ids":     {board.DeliveryQuery{Member: "a", IDs: []string{}, Any: true}, nil},
		"after":      {board.DeliveryQuery{Member: "a", After: 1, Any: true}, []string{"a2"}},
		"up to":      {board.DeliveryQuery{Member: "a", UpTo: 1, Any: true}, []string{"a1"}},
		"older":      {board.DeliveryQuery{Older: at(2), Any: true}, []string{"a1", "b1"}},
	})
	keep(t, s, board.Change{Left: []board.Place{place("a", 1), place("a", 2)}})
	want(t, s, "what was last is known", map[string]board.Queue{"a": {Last: 2}, "b": {Last: 1, Count: 1}}, count)
}

func goneTasks(t *testing.T, s board.Store) {
	keep(t, s, board.Change{
		Tasks:    []board.Task{task(1, func(t *board.Task) { t.Labels = []string{"x"} }), task(2, nil)},
		Steps:    []board.Step{{ID: id(10), Task: id(1), Title: "a"}, {ID: id(11), Task: id(2), Title: "b"}},
		Messages: []board.Message{{ID: id(20), Task: id(1), Author: "a", Content: "x", Created: at(1)}},
		Attachments: []board.Attachment{
			{ID: id(30), Filename: "a", Digest: "d1", Task: id(1), Created: at(1)}, {ID: id(31), Filename: "a", Digest: "d2", Task: id(1), Created: at(1)},
			{ID: id(32), Filename: "a", Digest: "d2", Task: id(2), Created: at(1)}, {ID: id(33), Filename: "a", Digest: "d3", Message: id(20), Created: at(1)},
		},
		Blobs: []board.Blob{{Digest: "d1", Bytes: []byte("1")}, {Digest: "d2", Bytes: []byte("2")}, {Digest: "d3", Bytes: []byte("3")}},
	})
	keep(t, s, board.Change{GoneTasks: []string{id(1)}})
	missing(t, s, "task", func(r board.Reader) (board.Task, error) { return r.Task(id(1)) })
	want(t, s, "tasks", []string{"P-2"}, func(r board.Reader) ([]string, error) {
		all, err := r.Tasks(board.TaskQuery{})
		return ids(all, func(t board.Task) string { return t.Key }), err
	})
	want(t, s, "label", nil, func(r board.Reader) ([]board.Task, error) { return r.Tasks(board.TaskQuery{Labels: []string{"x"}}) })
	want(t, s, "steps", nil, func(r board.Reader) ([]board.Step, error) { return r.Steps(id(1)) })
	want(t, s, "messages", nil, func(r board.Reader) ([]board.Message, error) { return r.Messages(board.MessageQuery{ID: id(20)}) })
	want(t, s, "files", []string{id(32)}, func(r board.Reader) ([]string, error) {
		all, err := r.Attachments(board.AttachmentQuery{})
		return ids(all, func(a board.Attachment) string { return a.ID }), err
	})
	for _, gone := range []string{"d1", "d3"} {
		missing(t, s, gone, func(r board.Reader) ([]byte, error) { return r.Blob(gone) })
	}
	want(t, s, "a file that another task has", []byte("2"), func(r board.Reader) ([]byte, error) { return r.Blob("d2") })
}

func failures(t *testing.T, s board.Store) {
	mine := errors.New("mine")
	err := s.UpdateBoard(t.Context(), func(board.Reader) (board.Change, error) {
		return board.Change{Tasks: []board.Task{task(1, nil)}}, mine
	})
	if !errors.Is(err, mine) {
		t.Errorf("got %v, want the function's error", err)
	}
	if err := s.ViewBoard(t.Context(), func(board.Reader) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("got %v, want the function's error", err)
	}
	missing(t, s, "what failed", func(r board.Reader) (board.Task, error) { return r.Task(id(1)) })
	ended, end := context.WithCancel(t.Context())
	end()
	err = s.UpdateBoard(ended, func(board.Reader) (board.Change, error) {
		return board.Change{Tasks: []board.Task{task(1, nil)}}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := s.ViewBoard(ended, func(board.Reader) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	missing(t, s, "what nobody waited for", func(r board.Reader) (board.Task, error) { return r.Task(id(1)) })
}

// atOnce: a change is made of what is there when it is kept.
func atOnce(t *testing.T, s board.Store) {
	keep(t, s, board.Change{Tasks: []board.Task{task(1, nil)}})
	const writers, each = 8, 10
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		wg.Go(func() {
			for range each {
				err := s.UpdateBoard(t.Context(), func(r board.Reader) (board.Change, error) {
					one, err := r.Task("P-1")
					one.Version++
					return board.Change{Tasks: []board.Task{one}}, err
				})
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	want(t, s, "counted", int64(1+writers*each), func(r board.Reader) (int64, error) {
		one, err := r.Task("P-1")
		return one.Version, err
	})
}

func oddTexts(t *testing.T, s board.Store) {
	for i, odd := range []string{"'; drop table task; --", `\`, "%_", "🙂\u202e", "a\tb\r\n", `{"json":[]}`, "\x7f"} {
		m := board.Message{ID: id(100 + i), Chat: id(60), Author: odd, Content: odd, Mentions: []string{odd}, Created: at(i)}
		keep(t, s, board.Change{Messages: []board.Message{m}})
		want(t, s, odd, []board.Message{m}, func(r board.Reader) ([]board.Message, error) {
			return r.Messages(board.MessageQuery{ID: m.ID})
		})
	}
}

// readersOwn: what a reader returned is the caller's to change.
func readersOwn(t *testing.T, s board.Store) {
	kept := task(1, func(t *board.Task) { t.Labels = []string{"a", "b"} })
	keep(t, s, board.Change{Tasks: []board.Task{kept}})
	got, err := read(t, s, func(r board.Reader) (board.Task, error) { return r.Task(kept.ID) })
	if err != nil {
		t.Fatal(err)
	}
	got.Labels[0] = "z"
	slices.Reverse(got.Labels)
	want(t, s, "kept", kept, func(r board.Reader) (board.Task, error) { return r.Task(kept.ID) })
}
