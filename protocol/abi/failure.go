package abi

import "fmt"

// Class says why a sandbox gave no result. It travels between processes as
// text, so the values never change.
type Class string

// The classes of failure.
const (
	// ClassModule: the module does not compile, link or follow its ABI.
	ClassModule Class = "module"
	// ClassGuest: the guest reported an error of its own.
	ClassGuest Class = "guest"
	// ClassTrap: the guest panicked, trapped or left with proc_exit.
	ClassTrap Class = "trap"
	// ClassLimit: the guest ran into a limit other than time.
	ClassLimit Class = "limit"
	// ClassTimeout: the call or the compilation took longer than it may.
	ClassTimeout Class = "timeout"
	// ClassCancelled: whoever asked no longer wants the answer.
	ClassCancelled Class = "cancelled"
	// ClassBusy: too many calls wait already; nothing was started.
	ClassBusy Class = "busy"
	// ClassWorkerLost: the process that ran the guest is gone for a reason
	// that was not this call's own.
	ClassWorkerLost Class = "worker_lost"
	// ClassInternal: hutch itself is at fault; details are in its log.
	ClassInternal Class = "internal"
)

// Failure is why a guest gave no result. Text is one line without host paths,
// guest memory or secrets, so that it may be shown to anyone.
type Failure struct {
	Class Class  `json:"class"`
	Text  string `json:"text"`
	// Limit is the limit that was hit, one of the Limit constants; empty if the
	// failure is about none.
	Limit LimitName `json:"limit,omitempty"`
}

// Error returns the class and the text.
func (f *Failure) Error() string { return string(f.Class) + ": " + f.Text }

// Is reports whether target is a failure of the same class, so that
// errors.Is(err, &abi.Failure{Class: abi.ClassTimeout}) works.
func (f *Failure) Is(target error) bool {
	t, ok := target.(*Failure)
	return ok && t.Class == f.Class && (t.Text == "" || t.Text == f.Text)
}

// Failf returns a failure of class c.
func Failf(c Class, format string, args ...any) *Failure {
	return &Failure{Class: c, Text: fmt.Sprintf(format, args...)}
}

// Exceeded returns a failure of class c over limit l. The text says what was
// found and what is allowed; the limit's name is added to it.
func Exceeded(c Class, l LimitName, format string, args ...any) *Failure {
	return &Failure{Class: c, Limit: l, Text: fmt.Sprintf(format, args...) + " (" + l.Key() + ")"}
}

// LimitName names a limit, as configurations and metrics do.
type LimitName string

// The limits. All but LimitStack, which is the engine's own, can be configured.
const (
	LimitWall        LimitName = "timeout"
	LimitCompile     LimitName = "compile"
	LimitMemory      LimitName = "memory"
	LimitStack       LimitName = "stack"
	LimitInput       LimitName = "input"
	LimitOutput      LimitName = "output"
	LimitLogLines    LimitName = "log_lines"
	LimitLogLine     LimitName = "log_line"
	LimitHostCalls   LimitName = "host_calls"
	LimitFuel        LimitName = "fuel"
	LimitConcurrency LimitName = "calls_at_once"
	LimitQueue       LimitName = "queue"
	LimitRate        LimitName = "calls_per_second"
)

// Key is how a message names the limit: the key of a configuration file, or for
// a limit without one, whose it is.
func (l LimitName) Key() string {
	if l == LimitStack {
		return "the engine's stack limit"
	}
	return "limits." + string(l)
}

// Known reports whether l is one of the limits above.
func (l LimitName) Known() bool {
	switch l {
	case LimitWall, LimitCompile, LimitMemory, LimitStack, LimitInput, LimitOutput,
		LimitLogLines, LimitLogLine, LimitHostCalls, LimitFuel, LimitConcurrency, LimitQueue, LimitRate:
		return true
	}
	return false
}
