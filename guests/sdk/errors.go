package sdk

import (
	"errors"
	"strconv"
	"strings"
)

// valueError says what is wrong, and where: path is like items[2].name.
type valueError struct {
	path string
	text string
}

func (e *valueError) Error() string {
	if e.path == "" {
		return e.text
	}
	return e.path + ": " + e.text
}

func invalid(text string) error { return &valueError{text: text} }

// within puts a step in front of the path of err: a property's name, or [2].
func within(step string, err error) error {
	e := new(valueError)
	if !errors.As(err, &e) {
		return &valueError{path: step, text: err.Error()}
	}
	if e.path != "" && e.path[0] != '[' {
		step += "."
	}
	return &valueError{step + e.path, e.text}
}

// prefixed says what err is about, when that is no step of a path.
func prefixed(subject string, err error) error { return invalid(subject + ": " + err.Error()) }

// quote quotes what came from outside, cut to a readable length.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "..."
	}
	return strconv.Quote(s)
}

func itoa(n int) string { return strconv.Itoa(n) }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// validKey reports whether every host takes s as a property's name.
func validKey(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && !isDigit(c) && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= 64
}

func containsByte(s string, c byte) bool { return strings.IndexByte(s, c) >= 0 }
