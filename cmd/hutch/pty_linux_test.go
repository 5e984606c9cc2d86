package main

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// screen is a pseudo-terminal and what was shown on it.
type screen struct {
	tty  *os.File
	ctrl *os.File
	read chan struct{} // closed when nothing more comes

	mu   sync.Mutex
	seen bytes.Buffer
}

// openPTY opens a terminal: what is written to ctrl is typed at it, and what it
// shows is read there.
func openPTY(t *testing.T) (ctrl, tty *os.File) {
	t.Helper()
	ctrl, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	must(t, unix.IoctlSetPointerInt(int(ctrl.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ctrl.Fd()), unix.TIOCGPTN)
	must(t, err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	return ctrl, tty
}

// newScreen opens a terminal on which somebody types.
func newScreen(t *testing.T, typed string) *screen {
	t.Helper()
	ctrl, tty := openPTY(t)
	s := &screen{tty: tty, ctrl: ctrl, read: make(chan struct{})}
	go func() {
		defer close(s.read)
		buf := make([]byte, 4096)
		for {
			n, err := ctrl.Read(buf)
			s.mu.Lock()
			s.seen.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	_, err := ctrl.WriteString(typed)
	must(t, err)
	return s
}

// shows reports whether a text was shown.
func (s *screen) shows(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Contains(s.seen.Bytes(), []byte(text))
}

// close ends the terminal and returns what it showed.
func (s *screen) close(t *testing.T) string {
	t.Helper()
	_ = s.tty.Close() // the command may have closed it
	<-s.read          // the other end is gone
	must(t, s.ctrl.Close())
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}
