package event_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
)

// What comes out of the guard is also judged by a client that we did not write: the
// scripts of every rule, and sequences at random.
func TestAGUIClientTakesGuardedStreams(t *testing.T) {
	scripts, err := txtar.ParseFile("testdata/guard.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var streams bytes.Buffer
	for _, f := range scripts.Files {
		script, _, _ := strings.Cut(string(f.Data), "=>\n")
		events, _ := eventtest.Collect(event.Guard(played(t, script), options(f.Name)))
		streams.Write(asArray(t, events))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		o := event.GuardOptions{Many: i%2 == 0}
		events, _ := eventtest.Collect(event.Guard(scripted(atRandom(random, o)), o))
		streams.Write(asArray(t, events))
	}
	judged(t, &streams)
}

// So is the shape of every event.
func TestAGUIClientTakesEveryEvent(t *testing.T) {
	golden, err := txtar.ParseFile("testdata/events.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, f := range golden.Files {
		e, err := event.Decode(f.Data)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(asArray(t, []event.Event{e}))
	}
	judged(t, &all, "--shapes")
}

func judged(t *testing.T, streams io.Reader, args ...string) {
	t.Helper()
	folder := eventtest.Clients(t, "../..")
	cmd := exec.CommandContext(t.Context(), "node", append([]string{"streams.mjs"}, args...)...)
	cmd.Dir, cmd.Stdin = folder, streams
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), " 0 faults") {
		t.Errorf("%v\n%s", err, out[max(0, len(out)-4000):])
	}
}

// atRandom makes a script of which the guard refuses at most the end: one in which any
// event may be wrong would seldom come far.
func atRandom(random *rand.Rand, o event.GuardOptions) []byte {
	script := []byte{0, 0}
	for range random.IntN(120) {
		longer := append(script[:len(script):len(script)], byte(random.IntN(200)), byte(random.IntN(256)))
		events, errs := eventtest.Collect(event.Guard(scripted(longer), o))
		if len(errs) == 0 || strings.HasSuffix(errs[0].Error(), "ended before the run did") && len(events) > 1 {
			script = longer
		}
	}
	return append(script, byte(random.IntN(200)), byte(random.IntN(256)))
}

func asArray(t *testing.T, events []event.Event) []byte {
	list := []json.RawMessage{}
	for _, e := range events {
		wire, err := event.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, wire)
	}
	line, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return append(line, '\n')
}
