//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/owner"
)

// keeperModule is a module whose tools write and read its storage: what they are given is
// the operation's body.
func keeperModule() []byte {
	return dialecttest.Module{
		Tools:    []tool.Spec{dialecttest.Spec("set"), dialecttest.Spec("get")},
		Requests: tool.Requests{"kv": json.RawMessage(`[{"max":"512MiB","reason":"keeps what it is given"}]`)},
		Do:       []dialecttest.Step{dialecttest.Ask("set", abi.OpKVSet), dialecttest.Ask("get", abi.OpKVGet)},
	}.Bytes()
}

// keeperFolder holds the keeper, a tool that never ends, and a policy that lets the
// keeper keep so much.
func keeperFolder(t *testing.T, most string) string {
	t.Helper()
	module := keeperModule()
	dir := folderWith(t, map[string][]byte{"keeper.wasm": module, "e.wasm": fixedLoop()})
	must(t, os.Mkdir(filepath.Join(dir, "state"), 0o700))
	policy := fmt.Sprintf("version: 1\nmodules:\n  keeper.wasm:\n    digest: sha256:%x\n    grant: {kv: {max: %s}}\n", sha256.Sum256(module), most)
	must(t, os.WriteFile(state{filepath.Join(dir, "state")}.policy(), []byte(policy), 0o600))
	return dir
}

func fixedLoop() []byte {
	return dialecttest.Module{Tools: []tool.Spec{dialecttest.Spec("endless")}, Do: []dialecttest.Step{dialecttest.Loop()}}.Bytes()
}

// keeping is what a client is doing all the time: it sets one key after the other,
// and remembers which the keeper said were kept.
type keeping struct {
	t    *testing.T
	name string
	call func(name, args string) (outcome, error)
	stop func()
	done chan struct{}

	mu    sync.Mutex
	kept  map[string]string
	lost  int           // calls that may or may not have been done
	moved chan struct{} // has something when a value was kept
}

// lostCall is what a client is told of a call whose server ended.
const lostCall = "the hutch process that ran the tools ended during this call: it may or may not have been done; look before you call again"

func startKeeping(t *testing.T, name string, call func(name, args string) (outcome, error)) *keeping {
	ctx, stop := context.WithCancel(context.Background())
	k := &keeping{t: t, name: name, call: call, stop: stop, done: make(chan struct{}), kept: map[string]string{}, moved: make(chan struct{}, 1)}
	go func() {
		defer close(k.done)
		for n := 0; ctx.Err() == nil && k.set(n); n++ {
		}
	}()
	return k
}

// set sets the nth key, and reports whether the client can go on.
func (k *keeping) set(n int) bool {
	key := fmt.Sprintf("%s/%d", k.name, n)
	value := strings.Repeat(key+" ", 1+n%50)
	// Nothing is there yet: a call that was done twice would find the value.
	got, err := k.call("set", fmt.Sprintf(`{"key":%q,"value":%q,"ifVersion":0}`, key, value))
	if err != nil {
		if !errors.Is(err, errProcessGone) {
			k.t.Errorf("%s: %v", key, err)
		}
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !got.failed && strings.Contains(string(got.structured), `"stored":true`):
		k.kept[key] = value
		select {
		case k.moved <- struct{}{}:
		default:
		}
	case got.text == lostCall:
		k.lost++
	default:
		k.t.Errorf("%s: %+v %s", key, got, got.structured)
		return false
	}
	return true
}

// progresses waits until so many more values were kept.
func (k *keeping) progresses(more int) {
	k.t.Helper()
	late := time.After(4 * patientFor)
	for start := k.count(); k.count() < start+more; {
		select {
		case <-k.moved:
		case <-k.done:
			k.t.Fatalf("%s: does not go on", k.name)
		case <-late:
			k.t.Fatalf("%s: hangs", k.name)
		}
	}
}

func (k *keeping) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.kept)
}

// end stops it and adds what was kept to all.
func (k *keeping) end(all map[string]string) {
	k.stop()
	<-k.done
	maps.Copy(all, k.kept)
	k.t.Logf("%s: %d values kept, %d calls lost", k.name, len(k.kept), k.lost)
}

// found holds that everything is there that was said to be kept.
func found(t *testing.T, all map[string]string, call func(name, args string) (outcome, error)) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		got, err := call("get", fmt.Sprintf(`{"key":%q}`, key))
		must(t, err)
		var v abi.KVValue
		if err := json.Unmarshal(got.structured, &v); err != nil || !v.Found || v.Value != all[key] {
			t.Fatalf("%s was kept, and is %+v: %v", key, got, err)
		}
	}
}

// A household is three hosts, each with its "hutch mcp", and a "hutch serve", all
// on one state folder.
type household struct {
	t     *testing.T
	dir   string
	hosts [3]*lineClient
	work  [3]*keeping
	serve *process
	web   *keeping
	named int
	kept  map[string]string // by those that ended
}

func (h *household) name(kind string) string {
	h.named++
	return fmt.Sprintf("%s-%d", kind, h.named)
}

func (h *household) startHost(i int) {
	c := startLines(h.t, h.dir)
	h.hosts[i], h.work[i] = c, startKeeping(h.t, h.name("mcp"), c.call)
}

// startServe starts a server, which takes the folder over, and a client over HTTP.
func (h *household) startServe() {
	h.t.Helper()
	h.serve = start(h.t, h.dir, "serve", "--addr", "127.0.0.1:0")
	url := h.serve.says(h.t, `^hutch: serving (http://127\.0\.0\.1:\d+)/mcp$`)
	h.serve.says(h.t, `^hutch: modules: 2 ready`)
	go func(said io.Reader) { _, _ = io.Copy(io.Discard, said) }(h.serve.errors)
	session, err := connectTo(h.t.Context(), url, func() {})
	must(h.t, err)
	h.t.Cleanup(func() { _ = session.Close() }) // whose server is killed, and the client goes on asking for it
	h.web = startKeeping(h.t, h.name("http"), func(name, args string) (outcome, error) { return callHTTP(session, name, args) })
}

// callHTTP calls over a session whose server may be killed.
func callHTTP(session *sdk.ClientSession, name, args string) (outcome, error) {
	r, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		return outcome{}, errors.Join(errProcessGone, err)
	}
	raw, err := json.Marshal(r.StructuredContent)
	a := outcome{structured: raw, failed: r.IsError}
	if len(r.Content) > 0 {
		a.text = r.Content[0].(*sdk.TextContent).Text
	}
	return a, err
}

// owner says who owns the folder: the number of a host, or -1 for the server.
func (h *household) owner() int {
	h.t.Helper()
	for late := time.After(patientFor); ; {
		info, err := owner.Look(filepath.Join(h.dir, "state"))
		if err == nil && h.serve != nil && info.PID == h.serve.Process.Pid {
			return -1
		}
		for i, c := range h.hosts {
			if err == nil && info.PID == c.p.Process.Pid {
				return i
			}
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			h.t.Fatalf("none of them owns the folder: %+v, %v", info, err)
		}
	}
}

// killOwner kills whoever owns the folder, and holds that everybody else goes on
// under the next one, which it returns.
func (h *household) killOwner() int {
	h.t.Helper()
	old := h.owner()
	witness := (old + 1) % len(h.hosts) // a host that is another's guest
	endless := h.hosts[witness].send("tools/call", `{"name":"endless","arguments":{}}`)
	_, err := h.hosts[witness].call("get", `{"key":"a"}`) // behind it on the same line, so the owner has both
	must(h.t, err)
	if old < 0 {
		h.serve.signal(h.t, syscall.SIGKILL)
		_ = h.serve.Wait()
		h.serve = nil
		h.web.end(h.kept)
	} else {
		h.hosts[old].kill()
		h.work[old].end(h.kept)
	}
	if got, err := endless(); err != nil || got.text != lostCall {
		h.t.Errorf("the call that ran when its owner was killed: %+v, %v", got, err)
	}
	for i, k := range h.work {
		if i != old {
			k.progresses(20)
		}
	}
	return old
}

// Whoever owns the folder may be killed, again and again, while everybody works:
// those that live go on, no answer is lost or comes twice, no call is done twice,
// and everything that a client was told is kept, is.
func TestOwnersAreKilledUnderLoad(t *testing.T) {
	t.Setenv(envLimit+"CALLS_PER_SECOND", "100000") // they make as many as they can
	h := &household{t: t, dir: keeperFolder(t, "512MiB"), kept: map[string]string{}}
	for i := range h.hosts {
		h.startHost(i)
	}
	killed := map[string]int{}
	for range 2 {
		h.startServe()
		if got := h.owner(); got != -1 {
			t.Fatalf("host %d owns the folder beside a server", got)
		}
		h.web.progresses(20)
		var hosts []int
		for range 3 { // the server, and then two hosts after it
			if old := h.killOwner(); old >= 0 {
				hosts = append(hosts, old)
				h.startHost(old)
				h.work[old].progresses(20)
			}
		}
		killed["mcp"] += len(hosts)
		killed["serve"]++
	}
	if killed["serve"] != 2 || killed["mcp"] != 4 {
		t.Errorf("killed: %v", killed)
	}
	for _, k := range h.work {
		k.end(h.kept)
	}
	for _, c := range h.hosts {
		found(t, h.kept, c.call)
		c.end()
	}
	last := startLines(t, h.dir)
	found(t, h.kept, last.call)
	last.end()
	t.Logf("%d values were kept", len(h.kept))
}

// An owner that is stopped, as a debugger does it, holds the folder and answers
// nothing. Whoever works through it is told so, and whoever comes is, both soon.
func TestOwnerIsStopped(t *testing.T) {
	t.Parallel() // it waits most of the time
	dir := keeperFolder(t, "1MiB")
	first := startLines(t, dir)
	_, err := first.call("get", `{"key":"a"}`)
	must(t, err)
	second := startLines(t, dir)
	_, err = second.call("get", `{"key":"a"}`)
	must(t, err)
	first.p.signal(t, syscall.SIGSTOP)
	third := startLines(t, dir)
	running := second.send("tools/call", `{"name":"get","arguments":{"key":"a"}}`)
	late := third.send("tools/list", `{}`)

	const stopped = "the hutch process that ran the tools stopped responding during this call: it may or may not have been done; look before you call again"
	if got, err := running(); err != nil || got.text != stopped || !got.failed {
		t.Errorf("the call that ran: %+v, %v", got, err)
	}
	if got, err := late(); err != nil || got.text != "no hutch process answers" {
		t.Errorf("the host that came later: %+v, %v", got, err)
	}
	third.ended()
	saw := third.said.String()
	if want := fmt.Sprintf("hutch: error: state %s: hutch mcp (process %d) does not respond", quoted(filepath.Join(dir, "state")), first.p.Process.Pid); !strings.Contains(saw, want) {
		t.Errorf("it said %q, want %q", saw, want)
	}
	first.p.signal(t, syscall.SIGCONT) // the second still waits for an owner
	if got, err := second.call("get", `{"key":"a"}`); err != nil || got.failed {
		t.Errorf("after it goes on: %+v, %v", got, err)
	}
	second.end()
	first.end()
}

// What owners of the past left behind keeps nobody out.
func TestLeftBehind(t *testing.T) {
	for name, leave := range map[string]func(dir string) error{
		"a socket nobody listens on": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "hutch.sock"), nil, 0o600),
				os.WriteFile(filepath.Join(dir, "owner.json"), fmt.Appendf(nil, `{"pid":1,"kind":"serve","version":"x","socket":%q}`, filepath.Join(dir, "hutch.sock")), 0o600))
		},
		"files that make no sense": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "owner.lock"), []byte("?"), 0o600),
				os.WriteFile(filepath.Join(dir, "heir.lock"), []byte("?"), 0o600), os.WriteFile(filepath.Join(dir, "owner.json"), []byte("{"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := keeperFolder(t, "1MiB")
			must(t, leave(filepath.Join(dir, "state")))
			c := startLines(t, dir)
			if got, err := c.call("get", `{"key":"a"}`); err != nil || got.failed {
				t.Errorf("%+v, %v", got, err)
			}
			c.end()
		})
	}
}

// A process that would do something else than the owner does does not go through
// it, and says which of both has to give.
func TestOwnersThatDiffer(t *testing.T) {
	dir := keeperFolder(t, "1MiB")
	first := startLines(t, dir)
	_, err := first.call("get", `{"key":"a"}`)
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, "other"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "other.yaml"), []byte("version: 1\n"), 0o600))
	at := fmt.Sprintf("hutch: error: state %s: hutch mcp (process %d) uses it ", quoted(filepath.Join(dir, "state")), first.p.Process.Pid)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--tools", "other"}, at + "for the tools in " + filepath.Join(dir, "tools") + "\n"},
		{[]string{"--policy", "other.yaml"}, at + "with the policy " + quoted(state{filepath.Join(dir, "state")}.policy())},
	} {
		c := startLines(t, dir, tt.args...)
		c.ended()
		if code := c.p.ProcessState.ExitCode(); code == exitOK || !strings.Contains(c.said.String(), tt.want) {
			t.Errorf("%q: exit code %d, said %q, want %q", tt.args, code, c.said, tt.want)
		}
		if lines := strings.Count(strings.TrimSpace(c.said.String()), "\n"); lines > 1 { // the error, and what to do
			t.Errorf("%q: said %d lines:\n%s", tt.args, lines+1, c.said)
		}
	}
	// Another version, as an upgrade leaves it running.
	said, err := os.ReadFile(filepath.Join(dir, "state", "owner.json"))
	must(t, err)
	var info owner.Info
	must(t, json.Unmarshal(said, &info))
	info.Version = "0.0.1"
	text, err := json.Marshal(info)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "state", "owner.json"), text, 0o600))
	c := startLines(t, dir)
	c.ended()
	if want := at[:len(at)-1] + ", of version 0.0.1, this one is "; !strings.Contains(c.said.String(), want) {
		t.Errorf("another version: said %q, want %q", c.said, want)
	}
	first.end()
}
