package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/hutch-run/hutch/protocol/abi"
)

// maxReasonBytes bounds what of the engine's words goes into a failure.
const maxReasonBytes = 300

// panicError is a panic of the engine itself, as opposed to a trap.
type panicError struct{ value any }

func enginePanic(v any) error { return &panicError{v} }

func (e *panicError) Error() string { return fmt.Sprint("engine panicked: ", e.value) }

// compileFailure says why a module does not compile.
func compileFailure(err error) *abi.Failure {
	var bug *panicError
	if errors.As(err, &bug) || isFileError(err) {
		return abi.Failf(abi.ClassInternal, "the engine failed; the log says how")
	}
	return abi.Failf(abi.ClassModule, "does not compile: %s", reason(err))
}

// failure says why the guest did not return; starting, before it could be
// called. The engine's errors carry stack traces, those of panics with paths of
// this machine; none of that leaves.
func (in *Instance) failure(err error, starting bool) *abi.Failure {
	doing := ""
	if starting {
		doing = "does not start: "
	}
	var exit *sys.ExitError
	var fault runtime.Error
	var stopped *stop
	text := err.Error()
	switch {
	case errors.As(err, &stopped):
		return stopped.failure
	case errors.Is(err, errHostPanic):
		return abi.Failf(abi.ClassInternal, "a host function failed; the log says how")
	case errors.As(err, &exit):
		if f := in.overMemory(fmt.Sprintf("left with exit code %d", exit.ExitCode())); f != nil && exit.ExitCode() != 0 {
			return f
		}
		return abi.Failf(abi.ClassTrap, "%sleft with exit code %d", doing, exit.ExitCode())
	case errors.As(err, &fault) && strings.Contains(text, recovered):
		// A panic while the guest ran, in none of our functions: arguments of a
		// WASI call that the engine does not check (v1.12.0: poll_oneoff).
		in.owner.logger.Warn("engine panicked under a guest", "error", err)
		return abi.Failf(abi.ClassTrap, "%strapped: in a system call", doing)
	case innermost(err).Error() == stackOverflow:
		return stackFailure(doing)
	case strings.Contains(text, trapped):
		if f := in.overMemory("trapped: " + reason(innermost(err))); f != nil {
			return f
		}
		return abi.Failf(abi.ClassTrap, "%strapped: %s", doing, reason(innermost(err)))
	case starting && !strings.Contains(text, recovered):
		return abi.Failf(abi.ClassModule, "%s%s", doing, reason(err))
	}
	in.owner.logger.Error("engine failed", "error", err)
	return abi.Failf(abi.ClassInternal, "the engine failed; the log says how")
}

// clean reports whether a guest's call ended where the engine expects that: in a trap,
// or because it was told to. After a deep stack the engine keeps the room for it.
func clean(err error) bool {
	if stopped := (*stop)(nil); errors.As(err, &stopped) {
		return stopped.failure.Limit != abi.LimitStack
	}
	text := err.Error()
	return strings.Contains(text, trapped) && !strings.Contains(text, recovered)
}

func stackFailure(doing string) *abi.Failure {
	return abi.Exceeded(abi.ClassLimit, abi.LimitStack, "%sstack overflow: calls are nested too deeply", doing)
}

// How the engine marks its errors (wazero v1.12.0, internal/wasmdebug); what
// has neither mark is not shown to anyone.
const (
	trapped   = "wasm error: "
	recovered = "(recovered by wazero)"
	// stackOverflow is the whole text of its error. In compiled code it comes at
	// 50 to 100 MB of stack, interpreted at 2,000 calls; neither can be set.
	stackOverflow = "stack overflow"
)

func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// reason returns the first line of err.
func reason(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return abi.OneLine(line, maxReasonBytes)
}
