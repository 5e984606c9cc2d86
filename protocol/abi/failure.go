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
