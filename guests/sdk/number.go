package sdk

import (
	"reflect"
	"strconv"
	"strings"
)

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number takes a number as it is written.
func (d *decoder) number() (string, error) {
	d.peek()
	n := numberLen(d.data[d.pos:])
	if n == 0 {
		return "", d.syntax("expected a number")
	}
	d.pos += n
	return string(d.data[d.pos-n : d.pos]), nil
}

// numberLen returns how long the number at the front of b is, 0 if there is none.
func numberLen(b []byte) int {
	i := 0
	digits := func() bool {
		start := i
		for i < len(b) && isDigit(b[i]) {
			i++
		}
		return i > start
	}
	next := func(set string) bool {
		if i < len(b) && containsByte(set, b[i]) {
			i++
			return true
		}
		return false
	}
	next("-")
	if !next("0") && !digits() {
		return 0
	}
	if next(".") && !digits() {
		return 0
	}
	if next("eE") {
		next("+-")
		if !digits() {
			return 0
		}
	}
	return i
}

func isJSONNumber(s string) bool { return s != "" && numberLen([]byte(s)) == len(s) }

func (d *decoder) numeric(v reflect.Value, s *shape) error {
	n, err := d.number()
	if err != nil {
		return err
	}
	switch s.kind {
	case decimal:
		v.SetString(n)
		return nil
	case integer:
		return setInteger(v, s, n)
	case unsigned:
		return setUnsigned(v, s, n)
	}
	f, err := strconv.ParseFloat(n, v.Type().Bits())
	if err != nil {
		return outOfRange(n, v)
	}
	v.SetFloat(f)
	return s.check(f, "")
}

func setInteger(v reflect.Value, s *shape, n string) error {
	digits, ok := wholeNumber(n)
	if !ok {
		return invalid(cut(n) + " is no whole number")
	}
	i, err := strconv.ParseInt(digits, 10, v.Type().Bits())
	if err != nil {
		return outOfRange(n, v)
	}
	v.SetInt(i)
	return s.check(float64(i), "")
}

func setUnsigned(v reflect.Value, s *shape, n string) error {
	digits, ok := wholeNumber(n)
	if !ok {
		return invalid(cut(n) + " is no whole number")
	}
	u, err := strconv.ParseUint(strings.TrimPrefix(digits, "-"), 10, v.Type().Bits())
	if err != nil || digits[0] == '-' && u != 0 {
		return outOfRange(n, v)
	}
	v.SetUint(u)
	return s.check(float64(u), "")
}

func outOfRange(n string, v reflect.Value) error {
	return invalid(cut(n) + " is out of range for " + v.Kind().String())
}

// cut shortens a number for a message.
func cut(n string) string {
	if len(n) > 40 {
		return n[:40] + "..."
	}
	return n
}

// wholeNumber writes a JSON number as plain digits, exactly, if it is whole:
// 5, 5.0 and 0.5e1 are all 5. Anything over 40 digits is left to fail as it is.
func wholeNumber(n string) (string, bool) {
	if !strings.ContainsAny(n, ".eE") {
		return n, true
	}
	mantissa, exponent := n, 0
	if i := strings.IndexAny(n, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(n[i+1:]); err != nil {
			return "", false
		}
		mantissa = n[:i]
	}
	sign := ""
	if mantissa[0] == '-' {
		sign, mantissa = "-", mantissa[1:]
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
	return sign + digits + strings.Repeat("0", exponent), true
}
