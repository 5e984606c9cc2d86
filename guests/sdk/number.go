package sdk

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
)

// checkNumber returns the JSON number n in the form that encoding/json takes for
// s.typ, nothing rounded.
func (s *shape) checkNumber(n string) (any, error) {
	switch s.kind {
	case decimal:
		return json.Number(n), nil
	case number:
		f, err := strconv.ParseFloat(n, s.typ.Bits())
		return s.inRange(n, f, err)
	}
	digits, ok := wholeNumber(n)
	if !ok {
		return nil, fmt.Errorf("%s is no whole number", abi.Cut(n, maxShown))
	}
	if s.kind == unsigned {
		u, err := strconv.ParseUint(digits, 10, s.typ.Bits())
		return s.inRange(digits, float64(u), err)
	}
	i, err := strconv.ParseInt(digits, 10, s.typ.Bits())
	return s.inRange(digits, float64(i), err)
}

// inRange returns the number n, of about that value, unless it is outside of the
// Go type's range, as err says, or of the author's.
func (s *shape) inRange(n string, value float64, err error) (any, error) {
	if err != nil {
		return nil, fmt.Errorf("%s is out of range for %s", abi.Cut(n, maxShown), s.typ.Kind())
	}
	return json.Number(n), s.checkBounds(value, "")
}

// wholeNumber writes a JSON number as plain digits, exactly, if it is whole:
// 5, 5.0 and 0.5e1 are all 5. Anything over 40 digits is left to fail as it is.
func wholeNumber(n string) (string, bool) {
	unsigned, negative := strings.CutPrefix(n, "-")
	mantissa, exponent := unsigned, 0
	if i := strings.IndexAny(unsigned, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(unsigned[i+1:]); err != nil {
			return "", false
		}
		mantissa = unsigned[:i]
	}
	before, after, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(before+after, "0")
	exponent += len(before) - len(digits) // zeros to put back behind digits
	switch {
	case strings.Trim(digits, "0") == "":
		return "0", true
	case exponent < 0:
		return "", false
	case exponent > 40:
		return n, true
	}
	digits = strings.TrimLeft(digits, "0") + strings.Repeat("0", exponent)
	if negative {
		digits = "-" + digits
	}
	return digits, true
}
