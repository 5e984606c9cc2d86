package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hutch-run/hutch/protocol/tool"
)

// Exit codes. Scripts depend on them, so they never change.
const (
	exitOK          = 0
	exitFailed      = 1 // the command or the tool failed
	exitUsage       = 2 // the command line, the environment or the configuration is wrong
	exitDenied      = 3 // policy says no, or waits for a person
	exitInterrupted = 130
)

// errUsage marks errors in what hutch was told, as opposed to what it met.
var errUsage = errors.New("wrong usage")

// errReported marks a failure that the command's output has already shown.
var errReported = errors.New("already reported")

// errSpoken marks an error that has been written already, with its hint.
var errSpoken = errors.New("already said")

// errInterrupted is what somebody reads who ended a command.
var errInterrupted = errors.New("interrupted")

// exitCodes maps errors to exit codes; the first row that matches decides, and
// an error without a row is exitFailed.
var exitCodes = []struct {
	err  error
	code int
}{
	{errUsage, exitUsage},
	{tool.ErrDenied, exitDenied},
	{tool.ErrHeld, exitDenied},
	{tool.ErrCancelled, exitInterrupted},
	{errInterrupted, exitInterrupted},
}

func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	for _, row := range exitCodes {
		if errors.Is(err, row.err) {
			return row.code
		}
	}
	return exitFailed
}

// commandError is an error with what to do about it and, for wrong usage, a
// mark that the text does not mention.
type commandError struct {
	err  error
	kind error  // a sentinel of exitCodes, or nil
	hint string // what to type next; may be empty
}

func (e *commandError) Error() string { return e.err.Error() }
func (e *commandError) Unwrap() []error {
	if e.kind == nil {
		return []error{e.err}
	}
	return []error{e.err, e.kind}
}

// usagef returns an error that exits with code 2.
func usagef(format string, args ...any) *commandError {
	return &commandError{err: fmt.Errorf(format, args...), kind: errUsage}
}

// hinted adds the next thing to type to an error.
func hinted(err error, format string, args ...any) *commandError {
	return &commandError{err: err, hint: fmt.Sprintf(format, args...)}
}

// withHint sets the next thing to type.
func (e *commandError) withHint(format string, args ...any) *commandError {
	e.hint = fmt.Sprintf(format, args...)
	return e
}

// report writes an error and its hint, one line each, and returns the exit
// code. nil writes nothing.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	spoken := errors.Is(err, errSpoken)
	if errors.Is(err, context.Canceled) { // whatever was on its way when the signal came
		err = errInterrupted
	}
	if spoken {
		return exitCode(err)
	}
	say := voice{w: stderr}
	if !errors.Is(err, errReported) {
		say.line("error: %s", err)
	}
	if hint := hintOf(err); hint != "" {
		say.line("hint: %s", hint)
	}
	return exitCode(err)
}

func hintOf(err error) string {
	var e *commandError
	if !errors.As(err, &e) {
		return ""
	}
	if e.hint != "" {
		return e.hint
	}
	return hintOf(e.err)
}
