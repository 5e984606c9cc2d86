package owner_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/runtime/owner"
)

// asMember makes the test program join the directory that is its next argument,
// say which it is, and wait for its input to end.
const asMember = "__member"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asMember {
		os.Exit(member(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

func member(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	o, c, err := owner.Join(ctx, dir, owner.Info{Kind: "mcp"})
	switch {
	case err != nil:
		fmt.Println(err)
		return 1
	case c != nil:
		fmt.Println("client of", c.Owner.PID)
		return 0
	}
	go func() { _ = o.Serve(ctx, http.NotFoundHandler(), slog.New(slog.DiscardHandler)) }()
	fmt.Println("owner")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func claim(t *testing.T, dir string) *owner.Owner {
	t.Helper()
	o, err := owner.Claim(dir, owner.Info{Kind: "serve", Version: "1.2.3", Tools: []string{"/tools"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Release(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// serve answers on o's socket with h until the test ends.
func serve(t *testing.T, o *owner.Owner, h http.Handler) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Serve(ctx, h, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestOneOwner(t *testing.T) {
	dir := t.TempDir()
	first := claim(t, dir)
	if _, err := owner.Claim(dir, owner.Info{Kind: "mcp"}); !errors.Is(err, owner.ErrOwned) {
		t.Fatalf("a second Claim: %v, want ErrOwned", err)
	}
	info, err := owner.Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.PID != os.Getpid() || info.Kind != "serve" || info.Version != "1.2.3" || !slices.Equal(info.Tools, []string{"/tools"}) {
		t.Errorf("Look = %+v", info)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Dial(t.Context(), dir); !errors.Is(err, owner.ErrGone) {
		t.Errorf("Dial after Release: %v, want ErrGone", err)
	}
	claim(t, dir)
}

func TestOnlyTheUserGetsIn(t *testing.T) {
	dir := t.TempDir()
	o := claim(t, dir)
	for _, file := range []string{"owner.lock", "owner.json", filepath.Base(o.Info().Socket)} {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has mode %v", file, mode)
		}
	}
}

func TestRequestsReachTheOwner(t *testing.T) {
	dir := t.TempDir()
	serve(t, claim(t, dir), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
	}))
	c, err := owner.Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(t.Context(), http.MethodPost, "/control/v1/x", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if string(got) != "POST /control/v1/x {}" {
		t.Errorf("the owner saw %q", got)
	}
}

func TestUpgrade(t *testing.T) {
	dir := t.TempDir()
	serve(t, claim(t, dir), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream, err := owner.Accept(w, r, "echo")
		if err != nil {
			return
		}
		_, err = io.Copy(stream, stream)
		if err = errors.Join(err, stream.Close()); err != nil {
			t.Error(err)
		}
	}))
	c, err := owner.Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := c.Upgrade(t.Context(), "/", "echo")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(stream, "hello")
	if err = errors.Join(err, stream.CloseWrite()); err != nil {
		t.Fatal(err)
	}
	back, err := io.ReadAll(stream)
	if err = errors.Join(err, stream.Close()); err != nil || string(back) != "hello" {
		t.Errorf("read %q, %v", back, err)
	}
	if _, err := c.Upgrade(t.Context(), "/", "other"); err == nil || !strings.Contains(err.Error(), "426 Upgrade Required: this path speaks echo") {
		t.Errorf("another protocol: %v", err)
	}
}

// A path that is too long for a socket gets one elsewhere.
func TestLongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o := claim(t, dir)
	serve(t, o, http.NotFoundHandler())
	if _, err := owner.Dial(t.Context(), dir); err != nil {
		t.Error(err)
	}
	socket := o.Info().Socket
	if err := o.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(socket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's folder is still there: %v", err)
	}
}

func TestLookAtGarbage(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "not JSON": "{", "no socket": `{"pid":1}`, "endless": strings.Repeat("[", 1<<20)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "owner.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := owner.Look(dir); !errors.Is(err, owner.ErrGone) {
				t.Errorf("Look: %v, want ErrGone", err)
			}
		})
	}
}

// A socket and an info that a killed owner left behind keep nobody out.
func TestOwnerKilled(t *testing.T) {
	dir := t.TempDir()
	first := startMember(t, dir)
	if first.said != "owner" {
		t.Fatalf("the first member said %q", first.said)
	}
	second := startMember(t, dir)
	if want := fmt.Sprint("client of ", first.cmd.Process.Pid); second.said != want {
		t.Fatalf("the second member said %q, want %q", second.said, want)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait() // it was killed
	if _, err := owner.Dial(t.Context(), dir); !errors.Is(err, owner.ErrGone) {
		t.Errorf("Dial: %v, want ErrGone", err)
	}
	if third := startMember(t, dir); third.said != "owner" {
		t.Errorf("the third member said %q", third.said)
	}
}

// Of many that start at once, one owns the directory and the others find it.
func TestManyStartAtOnce(t *testing.T) {
	dir := t.TempDir()
	said := make([]string, 8)
	var all sync.WaitGroup
	for i := range said {
		all.Go(func() { said[i] = startMember(t, dir).said })
	}
	all.Wait()
	slices.Sort(said)
	if said[len(said)-1] != "owner" || slices.ContainsFunc(said[:len(said)-1], func(s string) bool { return !strings.HasPrefix(s, "client of ") || s != said[0] }) {
		t.Errorf("they said %q", said)
	}
}

type started struct {
	cmd  *exec.Cmd
	said string
}

// startMember starts a member and returns when it has said what it is. It ends
// with the test.
func startMember(t *testing.T, dir string) started {
	t.Helper()
	cmd := exec.Command(os.Args[0], asMember, dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Error(err)
		return started{}
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return started{}
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // some were killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	return started{cmd, strings.TrimSpace(line)}
}

// While a process takes the directory over, none that joins gets in between.
func TestTakeOver(t *testing.T) {
	dir := t.TempDir()
	old := claim(t, dir)
	serve(t, old, http.NotFoundHandler())
	asked := 0
	o, err := owner.TakeOver(t.Context(), dir, owner.Info{Kind: "serve"}, func(ctx context.Context, c *owner.Client) error {
		if asked++; asked == 1 {
			return nil // it promises, and needs a while
		}
		if err := old.Release(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if o, _, err := owner.Join(ctx, dir, owner.Info{}); !errors.Is(err, owner.ErrOwned) {
			t.Errorf("Join while it is taken over: %v, %v, want ErrOwned", o, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if asked != 2 {
		t.Errorf("the old owner was asked %d times, want 2", asked)
	}
	if err := o.Release(); err != nil {
		t.Error(err)
	}
	o, _, err = owner.Join(t.Context(), dir, owner.Info{})
	if err != nil {
		t.Fatalf("Join once it is over: %v", err)
	}
	if err := o.Release(); err != nil {
		t.Error(err)
	}
}

func TestTakeOverIsRefused(t *testing.T) {
	dir := t.TempDir()
	serve(t, claim(t, dir), http.NotFoundHandler())
	no := errors.New("no")
	if _, err := owner.TakeOver(t.Context(), dir, owner.Info{}, func(context.Context, *owner.Client) error { return no }); !errors.Is(err, no) {
		t.Errorf("TakeOver: %v, want what the owner said", err)
	}
}

func TestJoinGivesUp(t *testing.T) {
	dir := t.TempDir()
	o := claim(t, dir)
	if err := os.Remove(o.Info().Socket); err != nil { // it owns, but cannot be reached
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := owner.Join(ctx, dir, owner.Info{}); !errors.Is(err, owner.ErrOwned) || !errors.Is(err, owner.ErrGone) {
		t.Errorf("Join: %v, want ErrOwned and ErrGone", err)
	}
}
