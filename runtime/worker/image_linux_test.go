package worker

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hutch-run/hutch/runtime/worker/workertest"
)

func openWorker(t *testing.T) func() (io.ReadCloser, error) {
	path := workertest.Command(t)[0]
	return func() (io.ReadCloser, error) { return os.Open(path) }
}

// A worker that runs from memory is the image, and nobody can change it.
func TestWorkerInMemory(t *testing.T) {
	p, err := NewPool(Options{Image: openWorker(t)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start uses the same memory
		if _, err := p.Describe(t.Context(), doing()); err != nil {
			t.Fatal(err)
		}
		p.Retire(doing().Digest)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}

	f, err := programInMemory(openWorker(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := startChild(startOf(f))
	if err != nil {
		t.Fatal(err)
	}
	if h, err := readHeader(c.out); err != nil || h.kind != kindHello {
		t.Errorf("first frame %+v, %v", h, err)
	}
	if os.Getuid() == 0 { // others may not look
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", c.pid)); err != nil || !strings.HasPrefix(exe, "/memfd:hutch-worker") {
			t.Errorf("it runs %q, %v", exe, err)
		}
	}
	c.kill()
	_ = c.wait()                       // it was killed
	_, _ = c.in.Close(), c.out.Close() // and nobody listens
	again, err := os.OpenFile(startOf(f)[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Write([]byte("x")); !errors.Is(err, unix.EPERM) {
		t.Errorf("writing to it: %v, want it refused", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// What cannot be started from memory is started from its file, with a warning.
func TestImageThatCannotBeStarted(t *testing.T) {
	for name, image := range map[string]func() (io.ReadCloser, error){
		"unreadable": func() (io.ReadCloser, error) { return nil, errors.New("no such thing") },
		"no program": func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("text")), nil },
	} {
		log := &logBuffer{}
		s := starter{command: workertest.Command(t), image: image, log: slog.New(slog.NewTextHandler(log, nil))}
		for range 2 {
			c, err := s.start()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.in.Close(); err != nil {
				t.Error(err)
			}
			if _, err := io.Copy(io.Discard, c.out); err != nil {
				t.Error(err)
			}
			if err := errors.Join(c.wait(), c.out.Close()); err != nil {
				t.Error(err)
			}
		}
		if n := strings.Count(log.String(), "embedded worker cannot be started"); n != 1 {
			t.Errorf("%s: %d warnings: %s", name, n, log)
		}
		s.close()
	}
}
