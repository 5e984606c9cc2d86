package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A chat that owns the state folder and ends does not end the answers of other chats, which
// run in it.
func TestChatLetsGuestsFinish(t *testing.T) {
	dir, args := agentFolder(t)
	must(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte("- match: {text: soon}\n  delay: 1s\n- say: At last.\n"), 0o600))
	screen := newScreen(t, "")
	owner := prepared(t, dir, append([]string{"chat"}, args...)...)
	owner.Stdin, owner.Stdout, owner.Stderr = screen.tty, screen.tty, screen.tty
	must(t, owner.Start())
	t.Cleanup(func() { _ = owner.Process.Kill() }) // it may have ended
	awaitShown(t, screen, 0, "\n> ")
	guest := prepared(t, dir, append([]string{"chat", "soon", "--json"}, args...)...)
	guest.Stderr = os.Stderr
	out, err := guest.StdoutPipe()
	must(t, err)
	must(t, guest.Start())
	t.Cleanup(func() { _ = guest.Process.Kill() }) // likewise
	said := bufio.NewReader(out)
	first, err := said.ReadString('\n')
	must(t, err)
	if !strings.Contains(first, "RUN_STARTED") {
		t.Errorf("begins with %s", first)
	}
	_, err = io.WriteString(screen.ctrl, "/quit\n")
	must(t, err)
	rest, err := io.ReadAll(said)
	must(t, err)
	if text := string(rest); !strings.Contains(text, `"delta":"last."`) || !strings.Contains(text, "RUN_FINISHED") {
		t.Errorf("the guest was told %s", text)
	}
	must(t, guest.Wait())
	must(t, owner.Wait())
	screen.close(t)
}
