package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/store"
)

// benchTurn runs a turn in which only the new message is sent, and returns how long it
// took: two commits, most of it.
func benchTurn(b testing.TB, k *session.Keeper, thread string, i int) time.Duration {
	b.Helper()
	in := session.Input{Thread: thread, RunID: fmt.Sprint("r", i), Agent: "agent", Messages: []chat.Message{
		{ID: fmt.Sprint("u", i), Role: chat.User, Content: chat.Text("What is the weather like today, and will it rain tomorrow?")},
	}}
	start := time.Now()
	s, err := k.Submit(context.Background(), session.Principal{Name: "ann"}, in, func(_ context.Context, r *session.Run) (session.Outcome, error) {
		r.Messages()
		said := chat.Message{ID: fmt.Sprint("a", i), Role: chat.Assistant, Content: chat.Text("It is fine today, and tomorrow it will rain in the afternoon.")}
		return session.Outcome{}, r.Add(said)
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for err == nil {
		_, err = s.Next(context.Background())
	}
	if !errors.Is(err, io.EOF) {
		b.Fatal(err)
	}
	return time.Since(start)
}

// grown fills a thread with so many turns, a hundred in each change.
func grown(b testing.TB, db *store.DB, thread string, turns int) {
	b.Helper()
	c := session.Change{Ref: session.Ref{Owner: "ann", ID: thread}}
	for at := 0; at < turns; at += 100 {
		c.At, c.Messages, c.Events, c.New = time.Now(), nil, nil, nil
		for i := at; i < min(turns, at+100); i++ {
			id := fmt.Sprint("old", i)
			c.New = append(c.New, session.Record{ID: id, Status: session.Finished, First: 1, Last: 2, Created: c.At, Ended: c.At})
			for _, role := range []chat.Role{chat.User, chat.Assistant} {
				c.Messages = append(c.Messages, chat.Message{ID: id + string(role), Role: role, Content: chat.Text("It is fine today, and tomorrow it will rain.")})
			}
			for range 5 {
				c.Events = append(c.Events, session.Kept{Run: id, Body: []byte(`{"type":"CUSTOM","name":"n","value":"It is fine today, and tomorrow it will rain."}`)})
			}
		}
		done, err := db.CommitThread(context.Background(), c)
		if err != nil {
			b.Fatal(err)
		}
		c.Head = done.Thread.Head
	}
}

// BenchmarkLongThread takes turns in threads that have had 10 and in one that has had
// 10,000, one after the other, so that both meet the same machine. The ratio is that of
// the median turns. "cold" is a turn of a keeper that has nothing of the thread in memory.
func BenchmarkLongThread(b *testing.B) {
	b.Run("warm", func(b *testing.B) { benchLongThread(b, false) })
	b.Run("cold", func(b *testing.B) { benchLongThread(b, true) })
}

func benchLongThread(b *testing.B, cold bool) {
	db := openNew(b, store.Options{})
	open := func() *session.Keeper {
		k, err := session.Open(b.Context(), db, session.Options{Thread: session.Bounds{Messages: 1 << 30}})
		if err != nil {
			b.Fatal(err)
		}
		return k
	}
	grown(b, db, "long", 10_000)
	k := open()
	took := map[bool][]time.Duration{} // by whether the thread is long
	for i := 0; b.Loop(); i++ {
		short := fmt.Sprint("short", i)
		grown(b, db, short, 9)
		for _, thread := range []string{short, "long"} {
			benchTurn(b, k, thread, 2*i)
			if cold {
				if err := k.Close(); err != nil {
					b.Fatal(err)
				}
				k = open()
			}
			took[thread == "long"] = append(took[thread == "long"], benchTurn(b, k, thread, 2*i+1))
		}
	}
	if err := k.Close(); err != nil {
		b.Fatal(err)
	}
	for _, all := range took {
		slices.Sort(all)
	}
	tenth, later := took[false][len(took[false])/2], took[true][len(took[true])/2]
	b.ReportMetric(float64(tenth.Microseconds()), "turn10-us")
	b.ReportMetric(float64(later.Microseconds()), "turn10000-us")
	b.ReportMetric(float64(later)/float64(tenth), "ratio")
	b.ReportMetric(0, "ns/op")
}
