package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// A person at a terminal is asked before a tool that waits for them: their yes has it
// run, anything else does not, and /quit ends.
func TestE3_22_ChatAsksAtATerminal(t *testing.T) {
	dir, args := agentFolder(t)
	screen := newScreen(t, "")
	p := prepared(t, dir, append([]string{"chat", "--thread", "c"}, args...)...)
	p.Stdin, p.Stdout, p.Stderr = screen.tty, screen.tty, screen.tty
	must(t, p.Start())
	from := 0
	for _, step := range []struct{ shown, typed string }{
		{"nothing was said in that thread yet: it begins now", ""},
		{"> ", "/help"}, {"/quit ends, and so does Ctrl-D", "/exit"}, {"there is no /exit, and it was not said", ""},
		{"> ", "wipe"}, {"Allow wipe with {}? [y/N] ", ""}, {"Not done.", "wipe"}, {"Allow wipe with {}? [y/N] ", "y"}, {"Done: all gone.", "/quit"},
	} {
		from = awaitShown(t, screen, from, step.shown)
		_, err := io.WriteString(screen.ctrl, step.typed+"\n")
		must(t, err)
	}
	ended := launch(p.Wait)
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(patientFor):
		_ = p.Process.Kill()
		t.Error("/quit does not end it")
	}
	if got := screen.close(t); strings.Count(got, "all gone") != 2 { // the tool's line, and the answer
		t.Errorf("shown: %s", got)
	}
}

// Ctrl-C ends an answer that takes long, which a person is told of, and not the conversation;
// where there is no answer it ends that. Whoever asked for one answer alone is done with it.
func TestChatStopsAnAnswer(t *testing.T) {
	dir, args := agentFolder(t)
	screen := newScreen(t, "")
	interrupted := func(p *process) {
		t.Helper()
		must(t, p.Process.Signal(os.Interrupt))
	}
	p := prepared(t, dir, append([]string{"chat", "--thread", "c"}, args...)...)
	p.Stdin, p.Stdout, p.Stderr = screen.tty, screen.tty, screen.tty
	must(t, p.Start())
	from := 0
	for _, step := range []struct{ shown, typed string }{
		{"> ", "slow"}, {"working; Ctrl-C stops it", ""}, {"stopped", ""}, {"> ", "greet"}, {"It said good day.", ""}, {"> ", ""},
	} {
		from = awaitShown(t, screen, from, step.shown)
		switch {
		case step.typed != "":
			_, err := io.WriteString(screen.ctrl, step.typed+"\n")
			must(t, err)
		case strings.HasPrefix(step.shown, "working") || step.shown == "> ":
			interrupted(p)
		}
	}
	_ = p.Wait() // the exit code says it
	if code := p.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("Ctrl-C where nothing is answered: %d", code)
	}
	once := prepared(t, dir, append([]string{"chat", "slow"}, args...)...)
	once.Stdin, once.Stdout, once.Stderr = screen.tty, screen.tty, screen.tty
	must(t, once.Start())
	awaitShown(t, screen, from, "working; Ctrl-C stops it")
	interrupted(once)
	_ = once.Wait()
	if code := once.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("Ctrl-C of one answer: %d", code)
	}
	screen.close(t)
}

// The end of what is typed ends a conversation, and what a shell writes next does not stand
// behind its prompt.
func TestChatEndsItsLine(t *testing.T) {
	dir, args := agentFolder(t)
	screen := newScreen(t, "")
	p := prepared(t, dir, append([]string{"chat"}, args...)...)
	p.Stdin, p.Stdout, p.Stderr = screen.tty, screen.tty, screen.tty
	must(t, p.Start())
	awaitShown(t, screen, 0, "\n> ")
	_, err := io.WriteString(screen.ctrl, "\x04")
	must(t, err)
	must(t, p.Wait())
	if got := screen.close(t); !strings.HasSuffix(got, "\n> \r\n") {
		t.Errorf("shown: %q", got)
	}
}

// awaitShown waits for a text behind what was shown before, and returns where it ends.
func awaitShown(t *testing.T, s *screen, from int, text string) int {
	t.Helper()
	for end := time.Now().Add(patientFor); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		at := bytes.Index(s.seen.Bytes()[from:], []byte(text))
		s.mu.Unlock()
		if at >= 0 {
			return from + at + len(text)
		}
	}
	t.Fatalf("not shown: %q in %q", text, s.seen.String())
	return 0
}
