package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	// soakEnv says how long a soak lasts at least, as in 1m or 20m. Without it there
	// is none.
	soakEnv = "HUTCH_SOAK"
	// soakProgramEnv is the program to soak, as make built it. Without it the test
	// builds one.
	soakProgramEnv = "HUTCH_TEST_PROGRAM"
	// soakCalls is how many good calls a soak makes at least.
	soakCalls = 10_000
	// soakDrivers is how many hands there are in the folder, and soakClients how
	// many clients make good calls.
	soakDrivers, soakClients = 5, 4
	// soakPace is how often a client calls: enough for soakCalls in a minute, and
	// not so often that it is the good calls that keep the processors busy.
	soakPace = 20 * time.Millisecond
)

// soakLimits let what never ends be over soon, and always by its time: a fast
// machine burns the fuel of a call in less. They count for good calls too.
var soakLimits = map[string]string{"timeout": "5s", "heartbeat": "2s", "compile": "8s", "fuel": "1000000000000"}

// TestSoak drops every hostile module there is into the folder of a real server,
// and changes, renames and removes it, while clients call good tools. No good
// call fails, what is hostile ends in an error that names why, and when it is
// gone nothing of it is left: no memory, worker, descriptor or goroutine. Beside that
// the policy is edited, well and badly, files come that want more than was decided,
// and at the end the server is killed: what it said it kept is there.
func TestSoak(t *testing.T) {
	if os.Getenv(soakEnv) == "" { // it wants the machine for itself: .ci/run has a step for it, make test does not
		t.Skip("takes long: make soak, or " + soakEnv + "=1m")
	}
	long, err := time.ParseDuration(os.Getenv(soakEnv))
	must(t, err)
	seed := uint64(time.Now().UnixNano())
	t.Logf("%v, seed %d", long, seed)
	acts := soakActs(t, seed)
	good := goodTools()
	s := startSoaked(t, good)
	good.calls = append(good.calls, s.keepers()...)
	good.ready(t, s)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients, sampler, warm sync.WaitGroup
	counts := make([]calls, soakClients)
	warm.Add(soakClients)
	for i := range counts {
		clients.Go(func() {
			counts[i].make(ctx, t, s, good, rand.New(rand.NewPCG(seed, uint64(i))), warm.Done)
		})
	}
	warm.Wait()
	before := s.measure(t)
	var sizes []int64
	sampler.Go(func() {
		for tick := time.Tick(250 * time.Millisecond); ctx.Err() == nil; <-tick {
			sizes = append(sizes, s.resident(t))
		}
	})
	end := time.Now().Add(long)
	enough := func() bool { return time.Now().After(end) && s.called.Load() >= soakCalls }
	rounds := playActs(t, s, acts, seed, enough)

	s.settles(t, before, good.modules)
	stop()
	clients.Wait()
	sampler.Wait()
	wereEnough(t, counts)
	isFlat(t, sizes)
	t.Logf("%d rounds of %d acts; %d workers seen; random modules that could be called: %d", rounds, len(acts), len(s.everSeen), s.randomReady.Load())
	s.saidNothingWrong(t)
	s.crashes(t)
	s.endsCleanly(t)
	s.saidNothingWrong(t)
}

// playActs plays all acts, in an order that the seed decides, and again until it
// was enough, or something failed.
func playActs(t *testing.T, s *soaked, acts []act, seed uint64, enough func() bool) (rounds int) {
	t.Helper()
	order := rand.New(rand.NewPCG(seed, 1<<32))
	for rounds = 0; !t.Failed() && (rounds == 0 || !enough()); rounds++ {
		order.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
		queue := make(chan act)
		var drivers sync.WaitGroup
		for range soakDrivers {
			drivers.Go(func() {
				h := hand{T: t, s: s, session: s.connect(t)}
				defer h.leave()
				for a := range queue {
					began := time.Now()
					a.play(h, rounds)
					if took := time.Since(began); took > 15*time.Second {
						t.Logf("%s took %v", a.name, took)
					}
				}
			})
		}
		for _, a := range acts {
			if t.Failed() || rounds > 0 && enough() {
				break
			}
			queue <- a
		}
		close(queue)
		drivers.Wait()
	}
	return rounds
}

// isFlat holds that memory in the last third was as it was in the second. Both
// have seen the same mix of files, so what is kept for each would show. A
// collector lets the heap double between collections: that, and no more, is what
// moves the median, by a few megabytes either way.
func isFlat(t *testing.T, sizes []int64) {
	t.Helper()
	third := len(sizes) / 3
	second, last := median(sizes[third:2*third]), median(sizes[2*third:])
	t.Logf("resident memory of the server: %d MiB in the second third, %d MiB in the last", second>>20, last>>20)
	if most := second + soakGrowth; last > most {
		t.Errorf("the server grew from %d to %d bytes, at most %d", second, last, most)
	}
}

// soakGrowth is how much the median of the server's resident memory may grow from
// one third of a soak to the next.
const soakGrowth = 24 << 20

func median(sizes []int64) int64 {
	sorted := slices.Sorted(slices.Values(sizes))
	return sorted[len(sorted)/2]
}

// soakProgram is the program as users have it, without the race detector.
func soakProgram(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(soakProgramEnv); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "hutch")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// startSoaked starts the program in folders of its own, with good tools and the
// policy for them.
func startSoaked(t *testing.T, g good) *soaked {
	t.Helper()
	dir := t.TempDir()
	s := &soaked{dir: dir, program: soakProgram(t), tools: filepath.Join(dir, "tools"), everSeen: map[int]string{}, kept: map[string]bool{}}
	s.policy = soakState(t, filepath.Join(dir, "state"), g.own["good-keeper.wasm"])
	s.connections.MaxIdleConnsPerHost = soakClients + soakDrivers
	must(t, os.Mkdir(s.tools, 0o700))
	for name, body := range g.own {
		put(t, s, name, body)
	}
	s.launch(t)
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it has ended already, unless the test failed
		if t.Failed() {
			t.Logf("the last the server said:\n%s", s.log.last())
		}
	})
	return s
}

// launch starts the server, and waits until it has looked at the tools.
func (s *soaked) launch(t *testing.T) {
	t.Helper()
	s.log = newSoakLog()
	s.cmd = exec.Command(s.program, "serve", "--addr", "127.0.0.1:0", "--tools", s.tools, "--state", filepath.Join(s.dir, "state"))
	s.cmd.Env = []string{"HOME=" + s.dir} // hutch knows all of its variables, and HUTCH_SOAK is none
	for name, value := range soakLimits {
		s.cmd.Env = append(s.cmd.Env, fmt.Sprintf("%s%s=%s", envLimit, upper(name), value))
	}
	out, err := s.cmd.StderrPipe()
	must(t, err)
	must(t, s.cmd.Start())
	go s.log.read(out)
	s.url = s.log.ready(t)
}
