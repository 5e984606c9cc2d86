package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/hutch-run/hutch/protocol/tool"
)

// terminal is where a person is asked. It is used by one goroutine.
type terminal struct {
	in *bufio.Scanner
	// typed is where somebody types; nil if it counts that they did so before they
	// were asked.
	typed *os.File
	out   io.Writer
	file  *os.File // to be closed; nil if out is not ours
}

// errNoTerminal is why nothing is decided where nobody can be asked.
var errNoTerminal = fmt.Errorf("%w: standard input is no terminal, and a person decides what a tool may do", tool.ErrDenied)

// openTerminal returns where somebody can be asked. Standard input has to be a
// terminal. What is asked is shown there, wherever standard error goes: nobody
// agrees to what they do not see.
func openTerminal(p program) (*terminal, error) {
	if !isTerminal(p.stdin) {
		return nil, errNoTerminal
	}
	t := &terminal{in: bufio.NewScanner(p.stdin), out: p.stderr}
	if f, ok := p.stdin.(*os.File); ok && !p.typesAhead {
		t.typed = f
	}
	if isTerminal(p.stderr) {
		return t, nil
	}
	name := "/dev/tty"
	if runtime.GOOS == "windows" {
		name = "CONOUT$"
	}
	var err error
	if t.file, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
		return nil, hinted(fmt.Errorf("%w: standard error is no terminal, so nobody would see what is decided", tool.ErrDenied), "run it without redirecting standard error")
	}
	t.out = t.file
	return t, nil
}

func (t *terminal) close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// show writes text as it may be shown.
func (t *terminal) show(text string) error {
	_, err := io.WriteString(t.out, printable(text))
	return err
}

// ask returns the line that somebody types, trimmed; nothing typed at all is an
// empty one. What was typed before it was asked is no answer. An interrupt does not
// wait for it.
func (t *terminal) ask(ctx context.Context, question string) (answer string, err error) {
	if t.typed != nil {
		if err := forgetTyped(t.typed); err != nil {
			return "", fmt.Errorf("what was typed before cannot be discarded: %w", err)
		}
	}
	answer, _, err = t.line(ctx, question+" ")
	return answer, err
}

// line returns the next line that is typed, trimmed; more says that it is not the end.
// An interrupt does not wait for it.
func (t *terminal) line(ctx context.Context, prompt string) (line string, more bool, err error) {
	if err := t.show(prompt); err != nil {
		return "", false, err
	}
	typed := launch(func() error {
		if more = t.in.Scan(); more {
			line = strings.TrimSpace(t.in.Text())
		}
		return t.in.Err()
	})
	select {
	case err := <-typed:
		return line, more, err
	case <-ctx.Done(): // the goroutine ends with the process
		return "", false, ctx.Err()
	}
}

// errDeclined is why nothing changed after somebody was asked.
var errDeclined = fmt.Errorf("%w: nothing was changed", tool.ErrDenied)

// agree asks whether to do what was shown.
func (t *terminal) agree(ctx context.Context, question string) error {
	answer, err := t.ask(ctx, question+" [y/N]")
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errDeclined, err)
	case strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes"):
		return nil
	}
	return errDeclined
}
