package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func awaitEcho(t *testing.T, tty *os.File, want bool) {
	t.Helper()
	deadline := time.After(patientFor)
	for tick := time.Tick(time.Millisecond); ; {
		now, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		must(t, err)
		if now.Lflag&unix.ECHO != 0 == want {
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("echo stays %t", !want)
		}
	}
}

// A secret that is typed is not shown, and a terminal shows again what is typed
// after it, also after an interrupt.
func TestSecretsAreTypedUnseen(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		dir := t.TempDir()
		person, tty := openPTY(t)
		t.Cleanup(func() { _, _ = person.Close(), tty.Close() })
		p := prepared(t, dir, "secrets", "set", "token")
		must(t, p.stdin.Close())
		var said strings.Builder
		p.Stdin, p.Stderr = tty, &said
		must(t, p.Start())
		awaitEcho(t, tty, false)
		if interrupted {
			must(t, p.Process.Signal(syscall.SIGINT))
		} else {
			_, err := io.WriteString(person, "hunter2hunter2\r")
			must(t, err)
		}
		_ = p.Wait() // the state says it better
		want := exitOK
		if interrupted {
			want = exitInterrupted
		}
		if code := p.ProcessState.ExitCode(); code != want || !strings.Contains(said.String(), "value of token, not shown: ") {
			t.Errorf("exit code %d, want %d: %s", code, want, said.String())
		}
		awaitEcho(t, tty, true)
		_, err := io.WriteString(tty, "the end")
		must(t, err)
		shown, err := readUntil(person, "the end")
		if err != nil || strings.Contains(shown, "hunter2") || strings.Contains(said.String(), "hunter2") {
			t.Errorf("the terminal shows %q, %v", shown, err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, "state", "secrets"))
		if !interrupted && (err != nil || string(raw) != "token=hunter2hunter2\n") || interrupted && err == nil {
			t.Errorf("kept: %q, %v", raw, err)
		}
	}
}

func readUntil(r io.Reader, end string) (string, error) {
	var all []byte
	buf := make([]byte, 100)
	for !strings.HasSuffix(string(all), end) {
		n, err := r.Read(buf)
		if all = append(all, buf[:n]...); err != nil {
			return string(all), err
		}
	}
	return string(all), nil
}
