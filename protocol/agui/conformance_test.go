package agui

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hutch-run/hutch/protocol/event/eventtest"
)

func node(t *testing.T, folder string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Real clients of both generations take everything that the server says, and answer
// what it asks.
func TestAGUIClients(t *testing.T) {
	folder := eventtest.Clients(t, "../..")
	server := httptest.NewServer(New((&fake{left: new(atomic.Int32)}).open, Options{}))
	defer server.Close()
	for _, c := range []struct {
		name string
		args []string
		old  []string // instead of args, for a client of 0.x
	}{
		{"hello", []string{"--expect", "success", "--turns", "2"}, nil},
		{"count", []string{"--expect", "success", "--expect-event", "TOOL_CALL_RESULT"}, nil},
		{"confirm", []string{"--expect", "success", "--tool", "confirm=yes"}, nil},
		{"both", []string{"--expect", "success", "--tool", "confirm=yes"}, nil},
		{"remove", []string{"--expect", "success", "--resume", "approve", "--expect-event", "TOOL_CALL_RESULT"}, nil},
		{"remove", []string{"--expect", "success", "--resume", "deny", "--expect-event", "TOOL_CALL_RESULT"}, nil},
		{"remove", []string{"--expect", "interrupt"}, nil},
		{"down", []string{"--expect", "error"}, nil},
		{"break", []string{"--expect", "error", "--expect-event", "STEP_FINISHED"}, nil},
		{"cancel", []string{"--expect", "cancelled"}, []string{"--expect", "error"}},
		{"everything", []string{"--expect", "success", "--tool", "confirm=yes", "--expect-event", "ACTIVITY_DELTA"}, nil},
	} {
		for _, generation := range []string{"1.0", "0.0.59"} {
			args := c.args
			if generation != "1.0" && c.old != nil {
				args = c.old
			}
			t.Run(c.name+"/"+strings.Join(args, " ")+"/"+generation, func(t *testing.T) {
				out, err := node(t, folder, append([]string{"check.mjs", server.URL + "/agui", "--message", c.name, "--client", generation, "--timeout", "30"}, args...)...)
				if err != nil || !strings.Contains(out, "PASS") {
					t.Errorf("%v\n%s", err, out)
				}
				if strings.Contains(out, "secret") {
					t.Errorf("a client reads what only the log should say\n%s", out)
				}
			})
		}
	}
}

// The four things that clients of 0.x cannot read are still those that downgraded
// keeps from them, and no others.
func TestWhatOldClientsCannotRead(t *testing.T) {
	out, err := node(t, eventtest.Clients(t, "../.."), "compat59.mjs")
	if err != nil || !strings.Contains(out, " 0 failed") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What runs the real clients finds what is wrong with a stream, and nothing else.
func TestTheChecksFindFaults(t *testing.T) {
	folder := eventtest.Clients(t, "../..")
	if os.Getenv("HUTCH_REQUIRE") != "all" {
		t.Skip("takes 40 s: HUTCH_REQUIRE=all runs it")
	}
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(folder, "selftest.sh"))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "\n36 passed, 0 failed\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
