package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

// What a model is shown of a turn that is larger than the bounds does not depend on whether
// the thread was in memory: it sees the question, and each result with its call.
func TestLargeTurnsAreReadWithTheirQuestion(t *testing.T) {
	calls := func(id string, n int) []chat.Message {
		var ids []string
		for i := range n {
			ids = append(ids, fmt.Sprint(id, "c", i))
		}
		all := []chat.Message{assistant(id, "", ids...)}
		for _, call := range ids {
			all = append(all, answer("", call, "done"))
		}
		return all
	}
	for name, c := range map[string]struct {
		did   []chat.Message
		shows string // of what the first keeper shows
	}{
		"several rounds":            {slices.Concat(calls("a", 2), calls("b", 1), calls("d", 1)), "q user go\nb assistant"},
		"one with many results":     {calls("a", 12), "q user go\na assistant"},
		"many results and one more": {slices.Concat(calls("a", 12), calls("b", 1)), "q user go\nb assistant"},
		"many rounds":               {slices.Concat(calls("a", 1), calls("b", 1), calls("d", 1), calls("e", 1), calls("f", 1), calls("g", 1), calls("h", 1)), "q user go\ng assistant"},
		"an answer behind results":  {append(calls("a", 5), assistant("z", "so")), "q user go\nz assistant so"},
	} {
		t.Run(name, func(t *testing.T) {
			store := &sessiontest.Memory{}
			o := session.Options{Window: session.Bounds{Messages: 4}}
			first := opened(t, store, o)
			turn(t, first, input("before", user("p", "hi")), says("pa", "hello"))
			turn(t, first, input("r", user("q", "go")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
				for _, m := range c.did {
					if err := errors.Join(r.Add(m), r.Commit(ctx)); err != nil {
						return session.Outcome{}, err
					}
				}
				return session.Outcome{}, nil
			})
			sees := func(k *session.Keeper, run string) (seen string) {
				turn(t, k, input(run), func(_ context.Context, r *session.Run) (session.Outcome, error) {
					seen = lines(r.Messages())
					return session.Outcome{}, nil
				})
				return seen
			}
			held := sees(first, "held")
			if !strings.HasPrefix(held, c.shows) {
				t.Errorf("what the model sees: %s", held)
			}
			if err := first.Close(); err != nil {
				t.Error(err)
			}
			want(t, "after a restart", sees(opened(t, store, o), "again"), held)
		})
	}
}

// A small bound leaves nine tenths too, and not the last turn alone.
func TestSmallThreadsKeepWhatTheyMay(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{Thread: session.Bounds{Messages: 5}})
	for i := range 3 {
		turn(t, k, input(fmt.Sprint("r", i), user(fmt.Sprint("u", i), "hi")), says(fmt.Sprint("a", i), "hello"))
	}
	turn(t, k, input("behind"), idle) // begins behind what is removed
	want(t, "what is left", history(t, k, annsThread()), "u1 user hi\na1 assistant hello\nu2 user hi\na2 assistant hello")
}
