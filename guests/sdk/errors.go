package sdk

import (
	"errors"
	"strconv"
	"strings"
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
func quote(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "..."
	}
	return strconv.Quote(s)
}

// cut shortens what came from outside where quotes would mislead.
func cut(s string) string {
	const most = 40
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
