package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/elastic/go-seccomp-bpf/arch"
	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
)

// needJail skips a test where the kernel has no jail, or not as much of Landlock.
func needJail(t testing.TB, landlock int) {
	t.Helper()
	found, err := landlocksys.LandlockGetABIVersion()
	calls, unreadable := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err == nil && unreadable == nil && found >= landlock && strings.Contains(string(calls), "kill_process") {
		return
	}
	text := fmt.Sprintf("needs seccomp and version %d of Landlock, found %d (%v, %v)", landlock, found, err, unreadable)
	if os.Getenv("HUTCH_REQUIRE") == "all" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// The outcomes of an attempt. Others are the text of the error.
const (
	done   = "done"
	killed = "killed" // by its filter
	eacces = "permission denied"
	eperm  = "operation not permitted"
)

// probeFolder makes what attempts want to find.
func probeFolder(t *testing.T) probeAt {
	t.Helper()
	p := probeAt{dir: t.TempDir()}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	abstract, err := net.Listen("unix", "@"+p.socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(tcp.Close(), abstract.Close()); err != nil {
			t.Error(err)
		}
	})
	if _, p.port, err = net.SplitHostPort(tcp.Addr().String()); err != nil {
		t.Fatal(err)
	}
	p.restore(t)
	return p
}

// restore puts everything back to where it was.
func (p probeAt) restore(t *testing.T) {
	t.Helper()
	err := errors.Join(os.RemoveAll(p.cache()), os.RemoveAll(p.outside()), os.Mkdir(p.cache(), 0o700),
		os.WriteFile(p.entry(), []byte("code"), 0o600), os.WriteFile(filepath.Join(p.dir, "port"), []byte(p.port), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// attempt says what becomes of an attempt in a jail.
func attempt(t *testing.T, p probeAt, jail, name string) string {
	t.Helper()
	program := workertest.Tester(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for liveness only
	defer cancel()
	cmd := exec.CommandContext(ctx, program, asProbe, jail, name, p.dir)
	cmd.Env, cmd.WaitDelay = []string{}, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var words strings.Builder
	cmd.Stderr = &words
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return done
	case endedByJail(err):
		return killed
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return strings.TrimSpace(string(out))
	default:
		t.Fatalf("%s in %s: %v\n%s", name, jail, err, words.String())
		return ""
	}
}

// What a worker may do while it compiles and while it runs. Whatever is not here
// ends the process both times.
var (
	whileCompiling = map[string]string{
		"nothing": done, "run, all at once": done,
		"read the cache": done, "write the cache": done, "write to a file": done, "look at a file": done,
		"executable mapping": done, "make executable": done,

		"read a file": eacces, "list a folder": eacces, "write outside": eacces, "remove outside": eacces, "parent's memory file": eacces, "parent's environment": eacces,
		"32 bit calls": "function not implemented",
	}
	whileRunning = map[string]string{
		"nothing": done, "run, all at once": done,
		"32 bit calls": "function not implemented",
	}
)

// Every attempt against the whole jail, as a worker puts it on.
func TestD24_JailRefuses(t *testing.T) {
	needJail(t, 1)
	p := probeFolder(t)
	for jail, wanted := range map[string]map[string]string{"first": whileCompiling, "both": whileRunning} {
		for _, name := range attemptNames() {
			want := killed
			if w, ok := wanted[name]; ok {
				want = w
			}
			if name == "raise a limit" && jail == "first" {
				continue // who may, may still
			}
			if got := attempt(t, p, jail, name); !strings.HasSuffix(got, want) {
				t.Errorf("%s in jail %q: %s, want %s", name, jail, got, want)
			}
			p.restore(t)
		}
	}
}

// Without a jail the attempts succeed, or they would prove nothing. What needs
// rights that not everybody has is left out.
func TestAttemptsAreReal(t *testing.T) {
	p := probeFolder(t)
	for _, name := range []string{
		"read a file", "read the cache", "list a folder", "write the cache", "write outside", "remove outside", "link outside", "look at a file",
		"tcp socket", "udp socket", "unix socket", "netlink socket", "socket pair", "connect", "listen", "connect abstract",
		"exec", "fork", "vfork", "signal the parent", "signal the parent's thread", "limit the parent",
		"executable mapping", "make executable", "copy a descriptor", "write to a file", "file in memory",
		"setuid", "personality", "run, all at once",
	} {
		if got := attempt(t, p, "none", name); got != done {
			t.Errorf("%s: %s", name, got)
		}
		p.restore(t)
	}
}

// Each wall by itself, so that none hides behind another.
func TestWalls(t *testing.T) {
	for _, test := range []struct {
		jail, attempt, want string
		landlock            int
	}{
		{"landlock", "read a file", eacces, 1},
		{"landlock", "list a folder", eacces, 1},
		{"landlock", "write outside", eacces, 1},
		{"landlock", "remove outside", eacces, 1},
		{"landlock", "link outside", eacces, 1},
		{"landlock", "exec", eacces, 1},
		{"landlock", "parent's memory file", eacces, 1},
		{"landlock", "trace the parent", eperm, 1},
		{"landlock", "read the parent's memory", eperm, 1},
		{"landlock", "listen", eacces, 4},
		{"landlock", "connect abstract", eperm, 6},
		{"landlock", "signal the parent", eperm, 6},
		{"landlock", "read the cache", done, 1},
		{"landlock", "write the cache", done, 1},
		{"landlock, hit", "read the cache", done, 1},
		{"landlock, hit", "write the cache", eacces, 1},
		{"landlock, hit", "write to a file", eacces, 1},
		{"landlock, running", "read the cache", eacces, 1},
		{"landlock, running", "write the cache", eacces, 1},
		{"seccomp", "tcp socket", killed, 0},
		{"seccomp", "exec", killed, 0},
		{"seccomp", "fork", killed, 0},
		{"seccomp", "signal the parent's thread", killed, 0},
		{"seccomp", "read a file", done, 0},
		{"seccomp, running", "read a file", killed, 0},
		{"seccomp, running", "executable mapping", killed, 0},
		{"seccomp, running", "make executable", killed, 0},
		{"limits", "write the cache", done, 0}, // an empty file
		{"limits", "write to a file", "file too large", 0},
		{"limits", "open many files", "too many open files", 0},
		{"none", "open many files", done, 0},
		{"closed", "read the cache", "too many open files", 0},
		{"closed", "copy a descriptor", "too many open files", 0},
		{"not dumpable", "be closed to look into", done, 0},
		{"none", "be closed to look into", "dumpable", 0},
		{"first, hit", "write the cache", eacces, 1},
	} {
		t.Run(test.jail+"/"+test.attempt, func(t *testing.T) {
			needJail(t, test.landlock)
			if got := attempt(t, probeFolder(t), test.jail, test.attempt); !strings.HasSuffix(got, test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// A real worker, after calls that made it start threads: every one of them is
// under both filters, and what the kernel shows of the rest is as it should be.
func TestD24_WorkersAreJailed(t *testing.T) {
	needJail(t, 1)
	p := newReal(t, Options{CacheDir: t.TempDir(), RequireJail: true})
	m := doing(dialecttest.Sleep(20*time.Millisecond), dialecttest.Text("done"))
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if _, _, err := p.Call(t.Context(), m, tool("echo", `{}`)); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	proc := fmt.Sprintf("/proc/%d", p.processes()[0].child.pid)
	threads, err := filepath.Glob(proc + "/task/*/status")
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads %q, %v", threads, err)
	}
	for _, thread := range threads {
		for name, want := range map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "2"} {
			if got := lineOf(t, thread, name+":"); got != want {
				t.Errorf("%s: %s %s, want %s", thread, name, got, want)
			}
		}
	}
	for name, want := range map[string]string{"Max open files": "0", "Max file size": "0", "Max core file size": "0"} {
		if got := lineOf(t, proc+"/limits", name); !strings.HasPrefix(got, want+" ") {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := lineOf(t, proc+"/oom_score_adj", ""); got != "1000" {
		t.Errorf("oom score %s, want 1000", got)
	}
	if _, err := os.ReadFile(proc + "/environ"); os.Getuid() != 0 && !errors.Is(err, fs.ErrPermission) {
		t.Errorf("its environment can be read: %v", err)
	}
	jail, err := p.Jail(t.Context())
	if err != nil || jail.Err() != nil || held(jail) != nil {
		t.Errorf("the pool says %+v, %v", jail, err)
	}
	for _, name := range []string{JailOOMScore, JailNotDumpable, JailLimits, JailNoNewOpenFiles} {
		if !jail.feature(name).Held {
			t.Errorf("%s is not in force", name)
		}
	}
}

// lineOf returns what follows a prefix in the file's first line that has it.
func lineOf(t *testing.T, path, prefix string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("%s has no line %q", path, prefix)
	return ""
}

// Asked before it ran anything, a pool starts a worker to find out.
func TestJailOfAPoolWithoutWorkers(t *testing.T) {
	needJail(t, 1)
	p := newReal(t, Options{})
	jail, err := p.Jail(t.Context())
	if err != nil || jail.Err() != nil {
		t.Errorf("%+v, %v", jail, err)
	}
	waitUntil(t, func() bool { return p.Stats().Workers == 0 })
	if again, err := p.Jail(t.Context()); err != nil || len(again.Features) != len(jail.Features) || p.Stats().Starts != 1 {
		t.Errorf("%+v, %v, stats %+v: want no second start", again, err, p.Stats())
	}
}

// Where the kernel lacks something, a worker goes on and the log says so once; if
// the jail is required, the module is not even looked at.
func TestKernelWithoutLandlock(t *testing.T) {
	needJail(t, 0)
	command := []string{workertest.Tester(t), asProbe, "worker without landlock", "nothing", ""}
	log := &logBuffer{}
	p := newReal(t, Options{Command: command, Logger: slog.New(slog.NewTextHandler(log, nil))})
	for _, m := range []Module{doing(), doing(dialecttest.Trap())} {
		if _, err := p.Describe(t.Context(), m); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "landlock: not available"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, log)
	}

	dir := t.TempDir()
	strict := newReal(t, Options{Command: command, CacheDir: dir, RequireJail: true})
	_, err := strict.Describe(t.Context(), asModule("broken.wasm", []byte("this would be class module")))
	wantClass(t, err, abi.ClassInternal, "workers cannot be jailed on this machine: it lacks landlock, landlock while running; \"hutch doctor\" says more")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("cache folder: %v, %v, want it empty", left, err)
	}
	jail, err := strict.Jail(t.Context())
	if err != nil || !errors.Is(jail.Err(), ErrNoJail) {
		t.Errorf("%+v, %v", jail, err)
	}
}

// The lists name calls that every architecture they are for has.
func TestCallsAreKnown(t *testing.T) {
	for _, goarch := range filteredArchitectures {
		is, err := arch.GetInfo(goarch)
		if err != nil {
			t.Fatal(err)
		}
		names := slices.Concat(runningCalls[:], compilingCalls[:], []string{"clone", "tgkill", "prlimit64", "prctl"})
		for _, name := range namedFor(goarch, names) {
			if _, ok := is.SyscallNames[name]; !ok {
				t.Errorf("%s has no %s", goarch, name)
			}
		}
	}
}

// A worker that its filter ended is reported as such.
func TestEndedByItsJail(t *testing.T) {
	needJail(t, 0)
	log := &logBuffer{}
	p := newReal(t, Options{
		Command: []string{workertest.Tester(t), asProbe, "seccomp", "tcp socket", ""},
		Logger:  slog.New(slog.NewTextHandler(log, nil)),
	})
	if _, err := p.Describe(t.Context(), doing()); err == nil {
		t.Error("no error")
	}
	waitUntil(t, func() bool { return p.Stats().Ends["jail"] > 0 })
	waitUntil(t, func() bool { return strings.Contains(log.String(), "reason=jail") })
}

// loadUnjailed is loadDialect without a jail, to measure against.
func loadUnjailed(log *slog.Logger) loader {
	return func(ctx context.Context, wasm []byte, head loadHead) (guest, loadReport, error) {
		if err := confine(head); err != nil {
			return nil, loadReport{}, err
		}
		g, err := dialect.Load(ctx, wasm, dialect.Options{
			CacheDir: head.CacheDir, CacheReadOnly: head.CacheReadOnly, Limits: head.Limits, Logger: log,
		})
		if err != nil {
			return nil, loadReport{}, err
		}
		return g, loadReport{}, nil
	}
}

// BenchmarkJail is a start until a cached module is described, with a jail and
// without.
func BenchmarkJail(b *testing.B) {
	needJail(b, 1)
	m := asModule("echo.wasm", dialecttest.Module{}.Bytes())
	for name, jail := range map[string][]string{"without": {asProbe, "worker without jail", "nothing", ""}, "with": {Arg}} {
		b.Run(name, func(b *testing.B) {
			p := newReal(b, Options{Command: slices.Concat([]string{workertest.Tester(b)}, jail), CacheDir: b.TempDir()})
			timed(b, func() {
				if _, err := p.Describe(b.Context(), m); err != nil {
					b.Fatal(err)
				}
				p.Retire(m.Digest)
			})
		})
	}
}
