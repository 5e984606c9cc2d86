package capability

import (
	"fmt"
	"slices"
	"strings"
)

// Pin is one version of a module: the one that serves, or one that offers itself
// in its place.
type Pin struct {
	// Digest and Definitions are 64 lower-case hex digits; empty is not known.
	Digest, Definitions string
	// Version is what the module calls itself.
	Version string
	// Requests is what it asks for.
	Requests Grant
	// Before are the digests that served before this one, oldest first.
	Before []string
}

// Change is one way in which a version differs from the one that serves, and for
// which a person has to be asked.
type Change struct {
	Kind ChangeKind
	// Text says what changed, on one line.
	Text string
}

// ChangeKind says what kind of change it is.
type ChangeKind string

// The kinds of changes that wait for a person.
const (
	Downgrade   ChangeKind = "downgrade"
	Wider       ChangeKind = "wider"
	Definitions ChangeKind = "definitions"
)

// Changes says why next may not take the place of pin without being asked for:
// it served before and was replaced, or calls itself older; it asks for more; or
// its tools say something else than they did. Nil: nothing of that kind, and new
// bytes alone are no reason.
func (pin Pin) Changes(next Pin) (found []Change) {
	if pin.Digest == "" || pin.Digest == next.Digest && pin.Definitions == next.Definitions {
		return nil
	}
	switch {
	case pin.Digest != next.Digest && slices.Contains(pin.Before, next.Digest):
		found = append(found, Change{Downgrade, "these bytes served before and were replaced"})
	case older(next.Version, pin.Version):
		found = append(found, Change{Downgrade, fmt.Sprintf("version %s comes after %s", shown(next.Version), shown(pin.Version))})
	}
	if wider := Widening(pin.Requests, next.Requests); len(wider) > 0 {
		found = append(found, Change{Wider, "also asks for " + strings.Join(wider, ", ")})
	}
	if pin.Definitions != next.Definitions {
		found = append(found, Change{Definitions, "its tools are described differently"})
	}
	return found
}

// older reports whether version a stands before b, both being numbers with dots
// between, with or without a v before. Anything else has no order.
func older(a, b string) bool {
	x, y := numbersOf(a), numbersOf(b)
	return x != nil && y != nil && slices.Compare(x, y) < 0
}

func numbersOf(version string) []int64 {
	core, _, pre := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	core, _, _ = strings.Cut(core, "+")
	var numbers []int64
	for part := range strings.SplitSeq(core, ".") {
		n, err := whole(part)
		if err != nil {
			return nil
		}
		numbers = append(numbers, n)
	}
	for len(numbers) > 1 && len(numbers) < 3 {
		numbers = append(numbers, 0)
	}
	if pre { // 1.0.0-rc.1 stands before 1.0.0
		return append(numbers, 0)
	}
	return append(numbers, 1)
}
