package sdk

import (
	"errors"
	"strconv"

	"github.com/hutch-run/hutch/protocol/abi"
)

// pathError says where something is wrong: path is like items[2].name.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }

func (e *pathError) Unwrap() error { return e.err }

// within puts a step in front of the path of err: a property's name, or [2].
func within(step string, err error) error {
	inner, ok := errors.AsType[*pathError](err)
	if !ok {
		return &pathError{step, err}
	}
	if inner.path[0] != '[' {
		step += "."
	}
	return &pathError{step + inner.path, inner.err}
}

// quote quotes what came from outside, cut to a readable length.
func quote(s string) string { return strconv.Quote(abi.Cut(s, 64)) }

// maxShown is how many bytes of a number or a name stand in an error where quotes
// would mislead.
const maxShown = 40
