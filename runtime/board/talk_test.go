package board_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
)

func TestC_05_StepsAreNamedByIDOrIndex(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	var made []tracker.StepOut
	for i := range 3 {
		s, err := d.agent("coder").AddStep(t.Context(), task.Key, tracker.AddStep{Title: fmt.Sprint("step ", i)})
		must(t, err)
		same(t, "index", s.Index, i)
		made = append(made, s)
	}
	got, err := d.agent("coder").UpdateStep(t.Context(), task.Key, "1", tracker.UpdateStep{})
	must(t, err)
	same(t, "done", []any{got.ID, got.Done, got.DoneBy.Slug}, []any{made[1].ID, true, "coder"})
	again, err := d.agent("coder").UpdateStep(t.Context(), task.Key, made[1].ID, tracker.UpdateStep{Done: tracker.Some(true)})
	must(t, err)
	same(t, "completed twice", again, got)
	same(t, "counts", []int{d.get(task.Key).StepsTotal, d.get(task.Key).StepsDone}, []int{3, 1})
	for _, ref := range []string{"3", "-1", "x", ""} {
		_, err := d.as("ann").GetStep(t.Context(), task.Key, ref)
		refused(t, err, tracker.CodeNotFound)
	}
	undone, err := d.agent("coder").UpdateStep(t.Context(), task.Key, "1", tracker.UpdateStep{Done: tracker.Some(false), Title: tracker.Some("other")})
	must(t, err)
	same(t, "undone", []any{undone.Title, undone.Done, undone.DoneAt, undone.DoneBy}, []any{"other", false, nil, nil})
}

func TestE1_18_StepsAreMovedAndDeleted(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	zero := 0
	for _, title := range []string{"c", "b", "a"} {
		_, err := d.as("ann").AddStep(t.Context(), task.Key, tracker.AddStep{Title: title, Index: &zero})
		must(t, err)
	}
	titles := func() (out []string) {
		all, err := d.as("ann").ListSteps(t.Context(), task.Key)
		must(t, err)
		for i, s := range all {
			same(t, "index", s.Index, i)
			out = append(out, s.Title)
		}
		return out
	}
	same(t, "in front", titles(), []string{"a", "b", "c"})
	moved, err := d.as("ann").UpdateStep(t.Context(), task.Key, "0", tracker.UpdateStep{Index: tracker.Some(2)})
	must(t, err)
	same(t, "moved", []any{moved.Index, titles()}, []any{2, []string{"b", "c", "a"}})
	_, err = d.as("ann").UpdateStep(t.Context(), task.Key, "0", tracker.UpdateStep{Index: tracker.Some(3)})
	refused(t, err, tracker.CodeInvalid)
	_, err = d.as("ann").UpdateStep(t.Context(), task.Key, "1", tracker.UpdateStep{})
	must(t, err)
	must(t, d.as("ann").DeleteStep(t.Context(), task.Key, "1"))
	same(t, "left", titles(), []string{"b", "a"})
	same(t, "counts", []int{d.get(task.Key).StepsTotal, d.get(task.Key).StepsDone}, []int{2, 0})
}

func TestStepsHaveALimit(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	for range tracker.MaxSteps {
		_, err := d.as("ann").AddStep(t.Context(), task.Key, tracker.AddStep{Title: "x"})
		must(t, err)
	}
	_, err := d.as("ann").AddStep(t.Context(), task.Key, tracker.AddStep{Title: "x"})
	refused(t, err, tracker.CodeInvalid)
}

func (d *desk) chat(slug string, members ...string) tracker.ChatOut {
	d.Helper()
	c, err := d.as("ann").CreateChat(d.Context(), tracker.CreateChat{Slug: slug, Members: members})
	must(d.T, err)
	return c
}

func TestC_04_OneMessageInChatsAndAtTasks(t *testing.T) {
	d := newDesk(t, board.Options{})
	task, chat := d.task("a"), d.chat("general")
	said, err := d.agent("coder").SendMessage(t.Context(), tracker.SendMessage{ChatID: "general", Content: "hello @other and @nobody"})
	must(t, err)
	same(t, "message", []any{said.ChatID, said.TaskID, said.Mentions, said.UnresolvedMentions}, []any{chat.ID, nil, []string{"other"}, []string{"nobody"}})
	comment, err := d.agent("coder").SendMessage(t.Context(), tracker.SendMessage{TaskID: task.Key, Content: "done", Mentions: []string{"@Third"}})
	must(t, err)
	same(t, "comment", []any{comment.TaskID, comment.Mentions}, []any{task.ID, []string{"third"}})
	reply, err := d.agent("other").ReplyMessage(t.Context(), said.ID, tracker.Reply{Content: "hi"})
	must(t, err)
	same(t, "reply", []any{reply.ChatID, reply.ParentID, reply.Mentions}, []any{chat.ID, said.ID, []string{}})
	thread, err := d.as("ann").ListMessages(t.Context(), tracker.MessageQuery{ParentID: said.ID})
	must(t, err)
	same(t, "thread", thread.Items, []tracker.MessageOut{reply})
	same(t, "events", d.events("other"), []string{tracker.EventChatMessage})
	same(t, "events", d.events("coder"), []string{tracker.EventChatMessage})
	same(t, "events", d.events("third"), []string{tracker.EventChatMessage, tracker.EventTaskComment, tracker.EventChatMessage})
	for _, in := range map[string]tracker.SendMessage{
		"neither": {Content: "x"},
		"both":    {ChatID: "general", TaskID: task.Key, Content: "x"},
		"empty":   {ChatID: "general", Content: " "},
		"long":    {ChatID: "general", Content: strings.Repeat("x", tracker.MaxMessage+1)},
	} {
		_, err := d.agent("coder").SendMessage(t.Context(), in)
		refused(t, err, tracker.CodeInvalid)
	}
}

func TestC_06_TheNewestComeOldestFirst(t *testing.T) {
	d := newDesk(t, board.Options{})
	d.chat("general")
	for i := range 5 {
		_, err := d.as("ann").SendMessage(t.Context(), tracker.SendMessage{ChatID: "general", Content: fmt.Sprint(i)})
		must(t, err)
	}
	q := tracker.MessageQuery{ChatID: "general", Paging: tracker.Paging{Limit: 2}}
	var got []string
	for {
		page, err := d.as("ann").ListMessages(t.Context(), q)
		must(t, err)
		for _, m := range page.Items {
			got = append(got, m.Content)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	same(t, "pages", got, []string{"3", "4", "1", "2", "0"})
}

func TestAClosedChatIsForItsMembers(t *testing.T) {
	d := newDesk(t, board.Options{})
	d.chat("secret", "coder", "ann")
	said, err := d.agent("coder").SendMessage(t.Context(), tracker.SendMessage{ChatID: "secret", Content: "for @other"})
	must(t, err)
	same(t, "one who cannot read it", said.UnresolvedMentions, []string{"other"})
	file, err := d.agent("coder").UploadFile(t.Context(), tracker.UploadFile{MessageID: said.ID, Filename: "a", Content: []byte("x")})
	must(t, err)
	other := d.agent("other")
	_, err = other.GetChat(t.Context(), "secret")
	refused(t, err, tracker.CodeNotFound)
	_, err = other.GetMessage(t.Context(), said.ID)
	refused(t, err, tracker.CodeNotFound)
	_, err = other.ReplyMessage(t.Context(), said.ID, tracker.Reply{Content: "x"})
	refused(t, err, tracker.CodeNotFound)
	_, err = other.ListMessages(t.Context(), tracker.MessageQuery{ChatID: "secret"})
	refused(t, err, tracker.CodeNotFound)
	_, err = other.DownloadFile(t.Context(), file.ID)
	refused(t, err, tracker.CodeNotFound)
	chats, err := other.ListChats(t.Context(), tracker.ChatQuery{})
	must(t, err)
	same(t, "chats", chats.Items, []string{})
	same(t, "events", d.events("other"), []string(nil))
}

func TestH_06_MentionsInText(t *testing.T) {
	d := newDesk(t, board.Options{})
	d.chat("general")
	for text, want := range map[string][]string{
		"@coder":                        {"coder"},
		"(@coder), @Other!":             {"coder", "other"},
		"@coder- and @coder":            {"coder"},
		"mail coder@coder.example":      {},
		"`@coder`":                      {},
		"```\n@coder\n``` @other":       {"other"},
		"``a ` @coder`` @other":         {"other"},
		"a ` alone and @coder":          {"coder"},
		"@all":                          {"all"},
		"@@coder":                       {},
		"https://example.org/@coder":    {},
		"é@coder":                       {},
		"@":                             {},
		"first line\n@coder\n\n@third.": {"coder", "third"},
	} {
		m, err := d.as("ann").SendMessage(t.Context(), tracker.SendMessage{ChatID: "general", Content: text})
		must(t, err)
		same(t, text, m.Mentions, want)
	}
}

// H-11, E1-17: who watches is told, but not of what they did.
func TestH_11_WatchersAreTold(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	w, err := d.agent("other").WatchTask(t.Context(), task.Key, tracker.WatchTask{AgentSlug: "other"})
	must(t, err)
	same(t, "answer", w, map[string]any{"ok": true, "watchers": []string{"ann", "other"}})
	_, err = d.agent("other").SendMessage(t.Context(), tracker.SendMessage{TaskID: task.Key, Content: "mine"})
	must(t, err)
	same(t, "of its own", d.events("other"), []string(nil))
	_, err = d.agent("coder").SendMessage(t.Context(), tracker.SendMessage{TaskID: task.Key, Content: "a comment"})
	must(t, err)
	same(t, "comment", d.events("other"), []string{tracker.EventTaskComment})
	same(t, "who comments watches", d.get(task.Key).Watchers, []string{"ann", "coder", "other"})
	_, err = d.as("ann").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{AssigneeSlug: tracker.Some("third")})
	must(t, err)
	same(t, "assigned", d.events("other"), []string{tracker.EventTaskAssigned})
	same(t, "assignee", d.events("third"), []string{tracker.EventTaskAssigned})
	_, err = d.agent("other").WatchTask(t.Context(), task.Key, tracker.WatchTask{AgentSlug: "coder"})
	refused(t, err, tracker.CodeForbidden)
	for range 2 {
		w, err = d.agent("other").UnwatchTask(t.Context(), task.Key, "other")
		must(t, err)
	}
	same(t, "left", w.Watchers, []string{"ann", "coder", "third"})
	_, err = d.agent("coder").SendMessage(t.Context(), tracker.SendMessage{TaskID: task.Key, Content: "again"})
	must(t, err)
	same(t, "no more", d.events("other"), []string(nil))
}

func TestE1_19_FilesAreKeptByWhatIsInThem(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	said, err := d.agent("coder").SendMessage(t.Context(), tracker.SendMessage{TaskID: task.Key, Content: "see"})
	must(t, err)
	first, err := d.agent("coder").UploadFile(t.Context(), tracker.UploadFile{TaskID: task.Key, Filename: "../../etc/passwd", Content: []byte("%PDF-1.4 x")})
	must(t, err)
	same(t, "file", []any{first.Filename, first.MIME, first.Size, first.TaskID}, []any{"passwd", "application/pdf", 10, task.ID})
	second, err := d.agent("coder").UploadFile(t.Context(), tracker.UploadFile{MessageID: said.ID, Filename: `C:\x\re"port.txt`, Content: []byte("%PDF-1.4 x")})
	must(t, err)
	same(t, "file", []any{second.Filename, second.SHA256, second.TaskID, second.MessageID}, []any{"re_port.txt", first.SHA256, task.ID, said.ID})
	page, err := d.as("ann").ListFiles(t.Context(), tracker.FileQuery{TaskID: task.Key})
	must(t, err)
	same(t, "files of the task", page.Items, []tracker.AttachmentOut{first, second})
	page, err = d.as("ann").ListFiles(t.Context(), tracker.FileQuery{ProjectID: "team-board", Paging: tracker.Paging{Limit: 1}})
	must(t, err)
	same(t, "files of the project", page.Items, []tracker.AttachmentOut{first})
	page, err = d.as("ann").ListFiles(t.Context(), tracker.FileQuery{ProjectID: "team-board", Paging: tracker.Paging{Cursor: page.NextCursor}})
	must(t, err)
	same(t, "the rest", page.Items, []tracker.AttachmentOut{second})
	got, err := d.as("ann").DownloadFile(t.Context(), second.ID)
	must(t, err)
	same(t, "content", string(got.Content), "%PDF-1.4 x")
	message, err := d.as("ann").GetMessage(t.Context(), said.ID)
	must(t, err)
	same(t, "attachments", message.Attachments, []tracker.AttachmentOut{second})

	_, err = d.agent("other").UploadFile(t.Context(), tracker.UploadFile{MessageID: said.ID, Filename: "a", Content: []byte("x")})
	refused(t, err, tracker.CodeForbidden)
	for _, in := range map[string]tracker.UploadFile{
		"no name": {TaskID: task.Key, Filename: "..", Content: []byte("x")},
		"both":    {TaskID: task.Key, MessageID: said.ID, Filename: "a"},
		"zero":    {TaskID: task.Key, Filename: "a\x00b"},
	} {
		_, err = d.agent("coder").UploadFile(t.Context(), in)
		refused(t, err, tracker.CodeInvalid)
	}
	_, err = d.agent("coder").UploadFile(t.Context(), tracker.UploadFile{TaskID: task.Key, Filename: "big", Content: make([]byte, tracker.MaxFile+1)})
	refused(t, err, tracker.CodeTooLarge)
	_, err = d.agent("coder").UploadFile(t.Context(), tracker.UploadFile{TaskID: task.Key, Filename: "big", Content: make([]byte, tracker.MaxFile)})
	must(t, err)
}

func TestH_03_EventsStayUntilAcknowledged(t *testing.T) {
	d := newDesk(t, board.Options{})
	coder := d.agent("coder")
	for range 3 {
		d.task("a", func(c *tracker.CreateTask) { c.AssigneeSlug = "coder" })
	}
	first, err := coder.Events(t.Context(), 0, 10)
	must(t, err)
	same(t, "seqs", []int64{first[0].Seq, first[1].Seq, first[2].Seq}, []int64{1, 2, 3})
	must(t, coder.Ack(t.Context(), first[1].ID, "unknown"))
	must(t, d.agent("other").Ack(t.Context(), first[0].ID))
	again, err := coder.Events(t.Context(), 0, 10)
	must(t, err)
	same(t, "left", []string{again[0].ID, again[1].ID}, []string{first[0].ID, first[2].ID})
	behind, err := coder.Events(t.Context(), 1, 1)
	must(t, err)
	same(t, "behind", behind[0].ID, first[2].ID)
}

// E0-18: what was sent ten times is parked, seen and sent again when somebody wants it.
func TestE0_18_ParkedAfterTenTries(t *testing.T) {
	d := newDesk(t, board.Options{})
	coder := d.agent("coder")
	d.task("a", func(c *tracker.CreateTask) { c.AssigneeSlug = "coder" })
	all, err := coder.Events(t.Context(), 0, 10)
	must(t, err)
	id := all[0].ID
	for i := range tracker.MaxTries {
		parked, err := coder.Sent(t.Context(), []string{id})
		must(t, err)
		same(t, fmt.Sprint("try ", i), parked, []string(nil))
	}
	parked, err := coder.Sent(t.Context(), []string{id})
	must(t, err)
	same(t, "parked", parked, []string{id})
	all, err = coder.Events(t.Context(), 0, 10)
	must(t, err)
	same(t, "not sent", len(all), 0)
	_, err = d.agent("other").Parked(t.Context(), "coder", tracker.Paging{})
	refused(t, err, tracker.CodeForbidden)
	page, err := d.as("ann").Parked(t.Context(), "coder", tracker.Paging{})
	must(t, err)
	same(t, "seen", []any{page.Items[0].ID, page.NextCursor}, []any{id, ""})
	refused(t, d.as("ann").Redrive(t.Context(), "coder", "unknown"), tracker.CodeNotFound)
	must(t, d.as("ann").Redrive(t.Context(), "coder", id))
	all, err = coder.Events(t.Context(), 0, 10)
	must(t, err)
	same(t, "sent again", []any{all[0].ID, all[0].Tries}, []any{id, 0})
}

func TestH_04_AFullQueueDropsTheOldestAndSaysSo(t *testing.T) {
	d := newDesk(t, board.Options{})
	d.chat("general", "ann", "coder")
	must(t, d.store.UpdateBoard(t.Context(), func(board.Reader) (c board.Change, _ error) {
		for n := range int64(tracker.QueueMost) {
			e := board.Event{ID: fmt.Sprint(n), Name: "x", Data: json.RawMessage(`{}`), Places: []board.Place{{Member: "coder", Number: n + 1}}}
			e.At = d.now
			c.Events = append(c.Events, e)
		}
		return c, nil
	}))
	_, err := d.as("ann").SendMessage(t.Context(), tracker.SendMessage{ChatID: "general", Content: "x"})
	must(t, err)
	first, err := d.agent("coder").Events(t.Context(), 0, 1)
	must(t, err)
	same(t, "the oldest left", first[0].Seq, tracker.QueueMost/10+1)
	last, err := d.agent("coder").Events(t.Context(), tracker.QueueMost, 10)
	must(t, err)
	same(t, "the last", []string{last[0].Name, last[1].Name}, []string{tracker.EventResync, tracker.EventChatMessage})
	var r tracker.Resync
	must(t, json.Unmarshal(last[0].Data, &r))
	same(t, "dropped", r, tracker.Resync{Dropped: tracker.QueueMost / 10, Reason: "overflow"})
}

func TestH_04_OldEventsGo(t *testing.T) {
	d := newDesk(t, board.Options{})
	for range 2 {
		d.task("a", func(c *tracker.CreateTask) { c.AssigneeSlug = "coder" })
	}
	d.now = d.now.Add(tracker.QueueAge)
	must(t, d.b.Sweep(t.Context()))
	same(t, "at the limit", len(must2(t)(d.agent("coder").Events(t.Context(), 0, 10))), 2)
	d.now = d.now.Add(time.Millisecond)
	must(t, d.b.Sweep(t.Context()))
	same(t, "resync", d.events("coder"), []string{tracker.EventResync})
}

func must2(t *testing.T) func([]tracker.Event, error) []tracker.Event {
	return func(all []tracker.Event, err error) []tracker.Event {
		t.Helper()
		must(t, err)
		return all
	}
}

func TestE0_02_ResumeDropsWhatIsThere(t *testing.T) {
	d := newDesk(t, board.Options{})
	for range 3 {
		d.task("a", func(c *tracker.CreateTask) { c.AssigneeSlug = "coder" })
	}
	_, last, err := d.agent("coder").Connect(t.Context(), tracker.AuthAgent{Slug: "coder"}, &tracker.Resume{LastSeq: 2})
	must(t, err)
	same(t, "last", last, 3)
	same(t, "left", must2(t)(d.agent("coder").Events(t.Context(), 0, 10))[0].Seq, 3)
	_, _, err = d.agent("coder").Connect(t.Context(), tracker.AuthAgent{}, &tracker.Resume{LastSeq: 99})
	must(t, err)
	same(t, "unknown", d.events("coder"), []string{tracker.EventTaskAssigned, tracker.EventResync})
}

func TestConnectIsForTheAgentItself(t *testing.T) {
	d := newDesk(t, board.Options{})
	_, _, err := d.agent("coder").Connect(t.Context(), tracker.AuthAgent{Slug: "other"}, nil)
	refused(t, err, tracker.CodeForbidden)
	_, _, err = d.as("ann").Connect(t.Context(), tracker.AuthAgent{}, nil)
	refused(t, err, tracker.CodeForbidden)
	for _, scope := range []string{tracker.TasksRead, tracker.MessagesRead, tracker.MembersRead, tracker.MembersSelf} {
		_, _, err = d.as("coder", scope).Connect(t.Context(), tracker.AuthAgent{}, nil)
		refused(t, err, tracker.CodeForbidden)
		if scope == tracker.MembersSelf {
			continue // that is for saying something of oneself
		}
		_, err = d.as("coder", scope).Events(t.Context(), 0, 1)
		refused(t, err, tracker.CodeForbidden)
		_, err = d.as("coder", scope).Take(t.Context(), 0, 1)
		refused(t, err, tracker.CodeForbidden)
		refused(t, d.as("coder", scope).Wait(t.Context(), -1), tracker.CodeForbidden)
	}
}

// C-20, E0-10: presence comes and goes, and others are told once.
func TestC_20_PresenceIsToldOnce(t *testing.T) {
	d := newDesk(t, board.Options{})
	_, _, err := d.agent("other").Connect(t.Context(), tracker.AuthAgent{}, nil)
	must(t, err)
	d.now = d.now.Add(1100 * time.Millisecond)
	must(t, d.b.Sweep(t.Context()))
	coder := d.agent("coder")
	m, _, err := coder.Connect(t.Context(), tracker.AuthAgent{Slug: "coder", Name: "Coder", Capabilities: []string{"go", "coding"}}, nil)
	must(t, err)
	same(t, "member", []any{m.Presence, m.Name, m.Capabilities}, []any{"online", "Coder", []string{"coding", "go"}})
	must(t, coder.Heartbeat(t.Context(), tracker.Heartbeat{Status: "busy", CurrentTasks: []string{"TB-1"}}))
	_, err = coder.UpdateMyStatus(t.Context(), tracker.MyStatus{Status: "at it"})
	must(t, err)
	must(t, d.b.Sweep(t.Context()))
	same(t, "at once", d.events("other"), []string(nil))
	d.now = d.now.Add(1100 * time.Millisecond)
	for range 2 {
		must(t, d.b.Sweep(t.Context()))
	}
	told := d.queue("other")
	same(t, "told", len(told), 1)
	same(t, "data", told[0].Data, tracker.AgentStatus{AgentSlug: "coder", Status: "at it", Activity: "busy", Presence: "online", CurrentTasks: []string{"TB-1"}})
	same(t, "itself", d.events("coder"), []string(nil))

	d.now = d.now.Add(tracker.OfflineAfter - 2*time.Second)
	must(t, d.agent("other").Heartbeat(t.Context(), tracker.Heartbeat{}))
	must(t, d.b.Sweep(t.Context()))
	d.now = d.now.Add(2 * time.Second)
	must(t, d.b.Sweep(t.Context()))
	got, err := d.as("ann").GetMember(t.Context(), "coder")
	must(t, err)
	same(t, "gone", []any{got.Presence, got.Activity, got.CurrentTasks, got.Status}, []any{"offline", "idle", []string{}, "at it"})
	d.now = d.now.Add(2 * time.Second)
	must(t, d.b.Sweep(t.Context()))
	same(t, "told", d.events("other"), []string{tracker.EventAgentStatus})
	must(t, coder.Heartbeat(t.Context(), tracker.Heartbeat{Status: "idle"}))
	must(t, coder.Disconnect(t.Context()))
	refused(t, coder.Heartbeat(t.Context(), tracker.Heartbeat{Status: "dancing"}), tracker.CodeInvalid)
	_, err = coder.UpdateMyStatus(t.Context(), tracker.MyStatus{Status: strings.Repeat("ж", tracker.MaxStatusText)})
	must(t, err)
	_, err = coder.UpdateMyStatus(t.Context(), tracker.MyStatus{Status: strings.Repeat("ж", tracker.MaxStatusText+1)})
	refused(t, err, tracker.CodeInvalid)
}

// Where many are online a sweep tells of some, those who have waited longest, and later ones
// of the rest. Who is away is not told at all.
func TestC_20_ManyAreToldOfBitByBit(t *testing.T) {
	d := newDesk(t, board.Options{})
	const many = 50 // each is told of the others, 2,450 times in all
	for n := range many {
		slug := fmt.Sprintf("agent-%02d", many-n)
		_, err := d.b.Ensure(t.Context(), tracker.CreateMember{Slug: slug})
		must(t, err)
		d.now = d.now.Add(time.Millisecond)
		_, _, err = d.agent(slug).Connect(t.Context(), tracker.AuthAgent{}, nil)
		must(t, err)
	}
	d.now = d.now.Add(2 * time.Second)
	must(t, d.b.Sweep(t.Context()))
	some := d.queue("agent-01")
	same(t, "told of at first", len(some), 1000/many)
	var first tracker.AgentStatus
	must(t, json.Unmarshal(some[0].Data, &first))
	same(t, "the first", first.AgentSlug, "agent-50")
	for range 3 {
		must(t, d.b.Sweep(t.Context()))
	}
	same(t, "told of then", len(d.queue("agent-01")), many-1-1000/many)
	same(t, "who is away", d.events("coder"), []string(nil))
}

func TestH_27_OnlyAnAdminMakesProjectsMembersAndChats(t *testing.T) {
	d := newDesk(t, board.Options{})
	coder := d.agent("coder")
	_, err := coder.CreateProject(t.Context(), tracker.CreateProject{Slug: "p"})
	refused(t, err, tracker.CodeForbidden)
	_, err = coder.CreateMember(t.Context(), tracker.CreateMember{Slug: "m"})
	refused(t, err, tracker.CodeForbidden)
	_, err = coder.CreateChat(t.Context(), tracker.CreateChat{Slug: "c"})
	refused(t, err, tracker.CodeForbidden)
	_, err = coder.UpdateMember(t.Context(), "me", tracker.UpdateMember{Name: tracker.Some("Boss")})
	refused(t, err, tracker.CodeForbidden)
	_, err = d.as("ann").CreateMember(t.Context(), tracker.CreateMember{Slug: "coder"})
	refused(t, err, tracker.CodeExists)
	for _, slug := range []string{"", "Me", "me", "all", "none", "-a", "a b", "ж", strings.Repeat("a", tracker.MaxSlug+1), "01234567-89ab-7def-8123-456789abcdef"} {
		_, err = d.as("ann").CreateMember(t.Context(), tracker.CreateMember{Slug: slug})
		refused(t, err, tracker.CodeInvalid)
	}
	p, err := d.as("ann").CreateProject(t.Context(), tracker.CreateProject{Slug: "tool-box"})
	must(t, err)
	same(t, "a key that is free", p.Key, "TB2")
	_, err = d.as("ann").CreateProject(t.Context(), tracker.CreateProject{Slug: "x", Key: "tb"})
	refused(t, err, tracker.CodeExists)
	for _, key := range []string{"1A", "A-B", "ABCDEFGHIJK"} {
		_, err = d.as("ann").CreateProject(t.Context(), tracker.CreateProject{Slug: "x", Key: key})
		refused(t, err, tracker.CodeInvalid)
	}
	page, err := d.as("ann").ListMembers(t.Context(), tracker.MemberQuery{Kind: "human"})
	must(t, err)
	same(t, "humans", page.Items[0].Slug, "ann")
}
