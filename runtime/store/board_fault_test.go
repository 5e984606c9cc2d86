package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/store"
)

// A desk is a board on an engine, with the project "p" and the human "ann", who may do
// everything.
type desk struct {
	*testing.T
	b   *board.Board
	ann tracker.Service
}

func newDesk(t *testing.T, place string) *desk {
	t.Helper()
	d := &desk{T: t, b: board.New(openAt(t, place, store.Options{}), board.Options{})}
	_, err := d.b.Ensure(t.Context(), tracker.CreateMember{Slug: "ann", Kind: tracker.Human})
	d.must(err)
	d.ann = d.as("ann", tracker.Admin, tracker.TasksAssign, tracker.TasksForce)
	_, err = d.ann.CreateProject(t.Context(), tracker.CreateProject{Slug: "p", Key: "P"})
	d.must(err)
	return d
}

func (d *desk) as(slug string, more ...string) tracker.Service {
	return d.b.For(tracker.Caller{Slug: slug, Scopes: append([]string{
		tracker.TasksRead, tracker.TasksWrite, tracker.TasksTake, tracker.StepsRead, tracker.StepsWrite, tracker.MessagesRead,
		tracker.MessagesWrite, tracker.ProjectsRead, tracker.MembersRead, tracker.MembersSelf, tracker.FilesRead, tracker.FilesWrite,
	}, more...)})
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// A hundred agents take a task at once. One has it, the others are told who; the winner may
// ask again, and nobody is told twice.
func TestE1_01_OneOfAHundredTakesATask(t *testing.T) {
	everywhere(t, func(t *testing.T, place string) {
		d := newDesk(t, place)
		const many = 100
		for n := range many {
			_, err := d.b.Ensure(t.Context(), tracker.CreateMember{Slug: fmt.Sprint("agent-", n)})
			d.must(err)
		}
		task, err := d.ann.CreateTask(t.Context(), tracker.CreateTask{Project: "p", Title: "t"})
		d.must(err)
		var all sync.WaitGroup
		begin, outcomes := make(chan struct{}), make([]error, many)
		for n := range many {
			all.Go(func() {
				<-begin
				_, outcomes[n] = d.as(fmt.Sprint("agent-", n)).TakeTask(context.WithoutCancel(t.Context()), task.Key, tracker.TakeTask{})
			})
		}
		close(begin)
		all.Wait()
		winner := fmt.Sprint("agent-", slices.Index(outcomes, nil))
		for n, err := range outcomes {
			var e *tracker.Error
			if lost := errors.As(err, &e) && e.Code == tracker.CodeTaken && strings.Contains(e.Message, winner); !lost && fmt.Sprint("agent-", n) != winner {
				t.Errorf("agent-%d: %v, want that %s has it", n, err, winner)
			}
		}
		before, err := d.ann.GetTask(t.Context(), task.ID)
		d.must(err)
		again, err := d.as(winner).TakeTask(t.Context(), task.Key, tracker.TakeTask{})
		d.must(err)
		if again.Version != before.Version || again.AssigneeSlug == nil || *again.AssigneeSlug != winner {
			t.Errorf("taken again: %+v, before %+v", again, before)
		}
		log, err := d.ann.TaskActivity(t.Context(), task.ID, tracker.Paging{})
		d.must(err)
		if n := len(slices.DeleteFunc(log.Items, func(a tracker.Activity) bool { return a.Action != "taken" })); n != 1 {
			t.Errorf("the log has %d takings", n)
		}
	})
}

// oddTexts mean something to a database, to a file system, to a template, or to nobody.
func oddTexts() []string {
	return []string{
		"'; drop table board_task; --", `" or "1"="1`, "1' union select body from board_member --", `\`, `\'`, `''`, "`", "%", "_", "%_%", "$1", "?1", ":a", "@a",
		"../../etc/passwd", `..\..\boot.ini`, "/etc/passwd", `C:\x`, "%2e%2e%2f", "..", ".", "~", "{{7*7}}", "${HOME}", "<script>alert(1)</script>", "&amp;", "--", ";",
		"🙂", "a\u202eb", "e\u0301", "\u00e9", "İ", "ﬁ", "ß", "a\u2028b", "\ufeffbom", "\ufffd", "\U0010ffff", "null", "true", "0x00", `{"a":1}`, "[]",
		"two\nlines", "tab\there", "\x01label:x\x02", "bell\a", "\x7f", "zero\x00", "\xff\xfe", "cut\xe2\x82",
	}
}

// odd fields keep a text and read it again, with what was read in. An idempotency key is not
// kept to be read: what was made under it comes back.
func (d *desk) oddFields(ctx context.Context) map[string]func(odd string) ([]string, error) {
	n := 0
	slug := func() string { n++; return fmt.Sprint("x", n) }
	task := func() tracker.TaskOut {
		out, err := d.ann.CreateTask(ctx, tracker.CreateTask{Project: "p", Title: "t"})
		d.must(err)
		return out
	}
	read := func(id string, of func(tracker.TaskOut) []string) ([]string, error) {
		out, err := d.ann.GetTask(ctx, id)
		return of(out), err
	}
	message := func(in tracker.SendMessage) ([]string, error) {
		m, err := d.ann.SendMessage(ctx, in)
		if err != nil {
			return nil, err
		}
		got, err := d.ann.GetMessage(ctx, m.ID)
		return []string{m.Content, got.Content}, err
	}
	last := func(task string) (string, error) {
		page, err := d.ann.ListMessages(ctx, tracker.MessageQuery{TaskID: task})
		if err != nil || len(page.Items) == 0 {
			return "", err
		}
		_, reason, _ := strings.Cut(page.Items[len(page.Items)-1].Content, ": ")
		return reason, nil
	}
	return map[string]func(string) ([]string, error){
		"name and description of a project": func(odd string) ([]string, error) {
			p, err := d.ann.CreateProject(ctx, tracker.CreateProject{Slug: slug(), Key: "X" + fmt.Sprint(n), Name: odd, Description: odd})
			if err != nil {
				return nil, err
			}
			got, err := d.ann.GetProject(ctx, p.Slug)
			return []string{got.Name, got.Description}, err
		},
		"name and capability of a member": func(odd string) ([]string, error) {
			m, err := d.ann.CreateMember(ctx, tracker.CreateMember{Slug: slug(), Name: odd, Capabilities: []string{odd}})
			if err != nil {
				return nil, err
			}
			got, err := d.ann.GetMember(ctx, m.Slug)
			return append(got.Capabilities, got.Name), err
		},
		"status of a member": func(odd string) ([]string, error) {
			_, err := d.ann.UpdateMyStatus(ctx, tracker.MyStatus{Status: odd})
			if err != nil {
				return nil, err
			}
			got, err := d.ann.GetMember(ctx, "me")
			return []string{got.Status}, err
		},
		"name of a chat": func(odd string) ([]string, error) {
			c, err := d.ann.CreateChat(ctx, tracker.CreateChat{Slug: slug(), Name: odd})
			if err != nil {
				return nil, err
			}
			got, err := d.ann.GetChat(ctx, c.Slug)
			return []string{got.Name}, err
		},
		"title of a task, by which it is found": func(odd string) ([]string, error) {
			made, err := d.ann.CreateTask(ctx, tracker.CreateTask{Project: "p", Title: odd})
			if err != nil {
				return nil, err
			}
			found, err := d.ann.ListTasks(ctx, tracker.TaskQuery{Text: odd, Paging: tracker.Paging{Limit: 1}})
			if err != nil || len(found.Items) != 1 {
				return nil, err
			}
			return []string{made.Title, found.Items[0].Title}, nil
		},
		"description of a task": func(odd string) ([]string, error) {
			t := task()
			if _, err := d.ann.UpdateTask(ctx, t.ID, tracker.UpdateTask{Description: tracker.Some(odd)}); err != nil {
				return nil, err
			}
			return read(t.ID, func(t tracker.TaskOut) []string { return []string{t.Description} })
		},
		"label of a task, by which it is found": func(odd string) ([]string, error) {
			made, err := d.ann.CreateTask(ctx, tracker.CreateTask{Project: "p", Title: "t", Labels: []string{odd}})
			if err != nil {
				return nil, err
			}
			found, err := d.ann.ListTasks(ctx, tracker.TaskQuery{Labels: []string{odd}})
			if err != nil || len(found.Items) != 1 || found.Items[0].ID != made.ID {
				return nil, err
			}
			return found.Items[0].Labels, nil
		},
		"title of a step": func(odd string) ([]string, error) {
			t := task()
			if _, err := d.ann.AddStep(ctx, t.ID, tracker.AddStep{Title: odd}); err != nil {
				return nil, err
			}
			got, err := d.ann.GetStep(ctx, t.ID, "0")
			return []string{got.Title}, err
		},
		"comment": func(odd string) ([]string, error) {
			return message(tracker.SendMessage{TaskID: task().ID, Content: odd})
		},
		"message": func(odd string) ([]string, error) {
			return message(tracker.SendMessage{ChatID: "general", Content: odd})
		},
		"mentions": func(odd string) ([]string, error) {
			m, err := d.ann.SendMessage(ctx, tracker.SendMessage{ChatID: "general", Content: "x", Mentions: []string{odd}})
			if err == nil && len(m.Mentions) > 0 {
				return m.Mentions, nil
			}
			return nil, errors.Join(err, tracker.Errorf(tracker.CodeInvalid, "nobody is meant"))
		},
		"reason of a rejection": func(odd string) ([]string, error) {
			t := task()
			_, err := d.ann.UpdateTask(ctx, t.ID, tracker.UpdateTask{AssigneeSlug: tracker.Some("ann")})
			d.must(err)
			r, err := d.ann.RejectTask(ctx, t.ID, tracker.RejectTask{Reason: odd})
			if err != nil {
				return nil, err
			}
			told, err := last(t.ID)
			return []string{r.Reason, told}, err
		},
		"content of a file, and its name": func(odd string) ([]string, error) {
			a, err := d.ann.UploadFile(ctx, tracker.UploadFile{TaskID: task().ID, Filename: odd, Content: []byte(odd)})
			if err != nil {
				return nil, err
			}
			got, err := d.ann.DownloadFile(ctx, a.ID)
			// Of a name stays what no system takes for more than one.
			if got.Filename == "" || got.Filename == ".." || strings.ContainsFunc(got.Filename, func(r rune) bool { return r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) }) {
				return []string{got.Filename}, err
			}
			return []string{string(got.Content)}, err
		},
		"idempotency key": func(odd string) ([]string, error) {
			in := tracker.CreateTask{Project: "p", Title: "t", IdempotencyKey: odd}
			first, err := d.ann.CreateTask(ctx, in)
			if err != nil {
				return nil, err
			}
			again, err := d.ann.CreateTask(ctx, in)
			if again.ID != first.ID {
				return []string{again.ID}, err
			}
			return []string{odd}, err
		},
	}
}

// Every text comes back as it was written, or is refused: never changed, and never a failure.
func TestEveryTextComesBackOrIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, place string) {
		d := newDesk(t, place)
		_, err := d.ann.CreateChat(t.Context(), tracker.CreateChat{Slug: "general"})
		d.must(err)
		for field, keep := range d.oddFields(t.Context()) {
			kept := 0
			for _, odd := range oddTexts() {
				got, err := keep(odd)
				var e *tracker.Error
				switch {
				case err != nil && (!errors.As(err, &e) || e.Status() >= 500):
					t.Errorf("%s: %q: %v", field, odd, err)
				case err == nil && (len(got) == 0 || slices.ContainsFunc(got, func(s string) bool { return s != odd })):
					t.Errorf("%s: %q came back as %q", field, odd, got)
				case err == nil:
					kept++
				}
			}
			if kept < len(oddTexts())/2 && field != "mentions" {
				t.Errorf("%s: only %d were kept", field, kept)
			}
		}
	})
}

// What names nothing is not found, or is refused, wherever something is named.
func TestNamesOfNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, place string) {
		d, ctx := newDesk(t, place), t.Context()
		task, err := d.ann.CreateTask(ctx, tracker.CreateTask{Project: "p", Title: "t"})
		d.must(err)
		for what, find := range map[string]func(string) error{
			"task":       func(ref string) error { _, err := d.ann.GetTask(ctx, ref); return err },
			"step":       func(ref string) error { _, err := d.ann.GetStep(ctx, task.ID, ref); return err },
			"project":    func(ref string) error { _, err := d.ann.GetProject(ctx, ref); return err },
			"member":     func(ref string) error { _, err := d.ann.GetMember(ctx, ref); return err },
			"chat":       func(ref string) error { _, err := d.ann.GetChat(ctx, ref); return err },
			"message":    func(ref string) error { _, err := d.ann.GetMessage(ctx, ref); return err },
			"attachment": func(ref string) error { _, err := d.ann.DownloadFile(ctx, ref); return err },
			"blocker": func(ref string) error {
				_, err := d.ann.AddDependency(ctx, task.ID, tracker.AddDependency{BlockedBy: ref})
				return err
			},
			"assignee": func(ref string) error {
				_, err := d.ann.ListTasks(ctx, tracker.TaskQuery{Assignee: ref})
				return err
			},
			"parked": func(ref string) error { return d.ann.Redrive(ctx, "me", ref) },
		} {
			for _, ref := range append(oddTexts(), "", " ", "P-", "P-0", "P-2", "p--1", "-1", "#", "#0", "#-1", "99999999999999999999", "9223372036854775807",
				strings.Repeat("a", tracker.MaxRef+1), "01990000-0000-7000-8000-000000000000") {
				if what == "assignee" && ref == "" {
					continue // it asks for nobody
				}
				var e *tracker.Error
				if err := find(ref); !errors.As(err, &e) || e.Status() >= 500 {
					t.Errorf("%s %q: %v", what, ref, err)
				}
			}
		}
	})
}
