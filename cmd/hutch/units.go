package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxDuration is the longest time limit that can be configured; more is a
// mistake in the unit.
const maxDuration = time.Hour

// sizeUnits are searched in order; B comes last because every unit ends in it.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1},
}

var errSize = errors.New("a size is a whole number and B, KiB, MiB or GiB, such as 64MiB")

// parseSize reads a size with its unit. A bare number is refused: nobody can
// know what it counts.
func parseSize(text string) (int64, error) {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(text, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > uint64(math.MaxInt64/unit.bytes) {
			break
		}
		return int64(n) * unit.bytes, nil
	}
	return 0, fmt.Errorf("%s: %w", quoted(text), errSize)
}

func setSize[T int | int64](field *T, text string, least, most int64) error {
	n, err := parseSize(text)
	if err != nil {
		return err
	}
	if n < least || n > most {
		return fmt.Errorf("%s: allowed are %s to %s", text, formatSize(least), formatSize(most))
	}
	*field = T(n)
	return nil
}

func setDuration(field *time.Duration, text string) error {
	return setDurationUpTo(field, text, maxDuration)
}

func setDurationUpTo(field *time.Duration, text string, most time.Duration) error {
	d, err := time.ParseDuration(text)
	if err != nil || text == "0" { // "0" parses without a unit
		return fmt.Errorf("%s: a duration is a number and ms, s, m or h, such as 30s", quoted(text))
	}
	if d < time.Millisecond || d > most {
		return fmt.Errorf("%s: allowed are 1ms to %dh", text, most/time.Hour)
	}
	*field = d
	return nil
}

// setCount takes a whole number, which may be written as 5e9, as in a policy.
func setCount[T int | int64](field *T, text string, most T) error {
	parsed, err := strconv.ParseInt(spelledOut(text), 10, 64)
	n := T(parsed)
	if err != nil {
		return fmt.Errorf("%s: a whole number without a unit, such as 100 or 5e9", quoted(text))
	}
	if int64(n) != parsed || n < 1 || n > most {
		return fmt.Errorf("%s: allowed are 1 to %d", text, most)
	}
	*field = n
	return nil
}

// spelledOut writes the zeros of a number such as 5e9; anything else stays as it is.
func spelledOut(text string) string {
	digits, exponent, ok := strings.Cut(text, "e")
	zeros, err := strconv.ParseUint(exponent, 10, 64)
	if !ok || digits == "" || err != nil || zeros > 18 {
		return text
	}
	return digits + strings.Repeat("0", int(zeros))
}

// formatSize writes n with the largest unit that leaves a whole number, else
// with one decimal place.
func formatSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if value == math.Trunc(value) {
		return fmt.Sprintf("%d%s", int64(value), units[unit])
	}
	return fmt.Sprintf("%.1f%s", value, units[unit])
}

func parsePort(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("port %s: allowed are 0 to 65535", quoted(text))
	}
	return int(n), nil
}
