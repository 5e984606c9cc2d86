package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// waitsInTheMiddle is a script whose answer to wait does not come behind its tool's.
const waitsInTheMiddle = `
- match: {tool: hi}
  delay: 60s
- match: {text: wait}
  call: {tool: hi}
- say: "Hello."
`

// A chat at a terminal goes on whoever owns the state folder: it itself, a serve that takes
// over in the middle of an answer, nobody behind a serve that was killed or that ended. What
// was cut off is said, and the thread is the same one.
func TestChatOutlivesOwners(t *testing.T) {
	dir, args := agentFolder(t)
	must(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(waitsInTheMiddle), 0o600))
	screen := newScreen(t, "")
	p := prepared(t, dir, append([]string{"chat", "--thread", "c"}, args...)...)
	p.Stdin, p.Stdout, p.Stderr = screen.tty, screen.tty, screen.tty
	must(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() }) // it may have ended
	from := 0
	shows := func(text string) { t.Helper(); from = awaitShown(t, screen, from, text) }
	types := func(text string) {
		t.Helper()
		_, err := io.WriteString(screen.ctrl, text+"\n")
		must(t, err)
	}
	hello := func() {
		t.Helper()
		shows("> ")
		types("hello")
		shows("Hello.")
		shows("> ")
	}
	waiting := func() {
		t.Helper()
		types("wait")
		shows("good day")
	}

	hello() // the chat owns the folder
	waiting()
	serve, _ := serveAgents(t, dir, args)
	shows("hutch: error: ")
	hello() // through the serve
	waiting()
	must(t, serve.Process.Kill())
	shows("hutch: error: ")
	shows("look at the thread again")
	hello() // alone again
	types("hello")
	shows("Hello.")
	shows("> ")
	serve, _ = serveAgents(t, dir, args)
	waiting()
	serve.signal(t, syscall.SIGTERM)
	shows("hutch: error: ")
	if got := serve.exit(t); got.ExitCode() != exitOK {
		t.Error(got)
	}
	hello()
	serve, url := serveAgents(t, dir, args)
	resp, err := oneShot().Get(url + "/agui/threads/c")
	must(t, err)
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	if said := strings.Count(string(text), `"content":"hello"`); said != 5 {
		t.Errorf("hello was said 5 times, and %d are there: %s", said, text)
	}
	if said := strings.Count(string(text), `"content":"wait"`); said != 3 {
		t.Errorf("wait was said 3 times, and %d are there: %s", said, text)
	}
	types("/quit")
	must(t, p.Wait())
	screen.close(t)
	serve.signal(t, syscall.SIGTERM)
	serve.exit(t)
}
