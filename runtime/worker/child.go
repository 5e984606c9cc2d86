package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// child is a running worker, as an operating system gives it.
type child struct {
	in   io.WriteCloser // its standard input
	out  io.ReadCloser  // its standard output
	pid  int
	kill func()       // ends it at once; may be called often, and late
	wait func() error // reaps it; called once, after out ended
	said func() string
}

// spawner starts children from one goroutine that keeps its thread: on Linux a
// child gets its death signal when the thread that made it ends, not only when
// the process does.
type spawner struct {
	starter starter
	jobs    chan chan<- spawned
	done    chan struct{}
}

type spawned struct {
	child *child
	err   error
}

func newSpawner(s starter) *spawner {
	return &spawner{starter: s, jobs: make(chan chan<- spawned), done: make(chan struct{})}
}

// run serves until it is stopped.
func (s *spawner) run() {
	defer close(s.done)
	defer s.starter.close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for reply := range s.jobs {
		c, err := s.starter.start()
		reply <- spawned{c, err}
	}
}

func (s *spawner) start() (*child, error) {
	reply := make(chan spawned, 1)
	s.jobs <- reply
	r := <-reply
	return r.child, r.err
}

// stop ends the goroutine. All children are reaped by then, and nobody starts one.
func (s *spawner) stop() {
	close(s.jobs)
	<-s.done
}

// startChild starts command with an empty environment, three descriptors and a
// process group of its own, so that a terminal's interrupt leaves it to us.
func startChild(command []string) (*child, error) {
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe for a worker: %w", err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pipe for a worker: %w", err), inRead.Close(), inWrite.Close())
	}
	words := &tail{}
	cmd := &exec.Cmd{
		Path: command[0], Args: command, Dir: childDir, Env: []string{},
		Stdin: inRead, Stdout: outWrite, Stderr: words,
		SysProcAttr: childAttr(),
		// Standard error is closed at the latest this long after the child ended.
		WaitDelay: time.Second,
	}
	err = cmd.Start()
	err = errors.Join(err, inRead.Close(), outWrite.Close())
	if err != nil {
		if cmd.Process != nil {
			err = errors.Join(err, cmd.Process.Kill(), cmd.Wait())
		}
		return nil, errors.Join(err, inWrite.Close(), outRead.Close())
	}
	return &child{
		in: inWrite, out: outRead, pid: cmd.Process.Pid,
		kill: func() {
			// The one error there is says that it has ended already.
			_ = cmd.Process.Kill()
		},
		wait: cmd.Wait, said: words.String,
	}, nil
}

// The beginning of what a worker says last names the cause, the end the place.
const (
	keepFirst = 1 << 10
	keepLast  = 3 << 10
)

// tail keeps the first and the last of what is written to it.
type tail struct {
	mu      sync.Mutex
	first   []byte
	last    []byte
	dropped bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if room := keepFirst - len(t.first); room > 0 {
		take := min(room, len(p))
		t.first = append(t.first, p[:take]...)
		p = p[take:]
	}
	if over := len(p) - keepLast; over > 0 {
		p, t.dropped = p[over:], true
	}
	if over := len(t.last) + len(p) - keepLast; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
		t.dropped = true
	}
	t.last = append(t.last, p...)
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dropped {
		return string(t.first) + "\n[...]\n" + string(t.last)
	}
	return string(t.first) + string(t.last)
}
