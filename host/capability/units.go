package capability

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// sizeUnits are searched in order; B comes last because every unit ends in it.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}

// size returns a parser for a size. A number without a unit is refused: nobody
// can know what it counts.
func size(least, most int64) func(string) (int64, error) {
	return func(text string) (int64, error) {
		for _, unit := range sizeUnits {
			digits, ok := strings.CutSuffix(text, unit.suffix)
			if !ok {
				continue
			}
			n, err := whole(digits)
			if err != nil || n > math.MaxInt64/unit.bytes {
				break
			}
			return within(n*unit.bytes, least, most, formatSize)
		}
		return 0, errors.New("a size is a whole number and B, KiB, MiB or GiB, such as 64MiB")
	}
}

// whole reads digits and nothing else.
func whole(digits string) (int64, error) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, errors.New("a whole number is wanted here")
	}
	return strconv.ParseInt(digits, 10, 64)
}

func within[T int64 | time.Duration](n, least, most T, format func(T) string) (T, error) {
	if n < least || n > most {
		return 0, fmt.Errorf("allowed are %s to %s", format(least), format(most))
	}
	return n, nil
}

// formatSize writes n with the largest unit that leaves a whole number.
func formatSize(n int64) string {
	for _, unit := range []int{2, 1, 0} {
		if u := sizeUnits[unit]; n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// duration returns a parser for a time.
func duration(least, most time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || strings.Trim(text, "0123456789.") == "" { // "0" parses without a unit
			return 0, errors.New("a duration is a number and ms, s, m or h, such as 30s")
		}
		return within(d, least, most, formatDuration)
	}
}

// formatDuration writes d without the zeros that [time.Duration.String] adds.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// count returns a parser for a whole number, which may be written as 5e9.
func count(least, most int64) func(string) (int64, error) {
	return func(text string) (int64, error) {
		n, err := whole(text)
		if digits, zeros, ok := strings.Cut(text, "e"); ok {
			n, err = scaled(digits, zeros)
		}
		if err != nil {
			return 0, errors.New("a whole number without a unit is wanted here, such as 100 or 5e9")
		}
		return within(n, least, most, func(n int64) string { return strconv.FormatInt(n, 10) })
	}
}

func scaled(digits, zeros string) (int64, error) {
	n, err := whole(digits)
	if err != nil {
		return 0, err
	}
	e, err := whole(zeros)
	if err != nil || e > 18 {
		return 0, errors.New("a whole number is wanted here")
	}
	return whole(strconv.FormatInt(n, 10) + strings.Repeat("0", int(e)))
}

// ratePeriods are the words after the slash of a rate.
var ratePeriods = []struct {
	word string
	per  time.Duration
}{{"s", time.Second}, {"min", time.Minute}, {"h", time.Hour}, {"day", 24 * time.Hour}}

func parseRate(text string) (Rate, error) {
	digits, period, _ := strings.Cut(text, "/")
	n, err := whole(digits)
	for _, p := range ratePeriods {
		if p.word == period && err == nil && n >= 1 && n <= 1_000_000 {
			return Rate{int(n), p.per}, nil
		}
	}
	return Rate{}, errors.New("a rate is 1 to 1000000, a slash and s, min, h or day, such as 60/min")
}

// String writes r as a policy does.
func (r Rate) String() string {
	for _, p := range ratePeriods {
		if p.per == r.Per {
			return strconv.Itoa(r.N) + "/" + p.word
		}
	}
	return ""
}

// perDay makes rates comparable.
func (r Rate) perDay() float64 {
	if r.N == 0 {
		return math.Inf(1)
	}
	return float64(r.N) * float64(24*time.Hour) / float64(r.Per)
}

func parsePort(text string) (int, error) {
	n, err := whole(text)
	if err != nil || n < 1 || n > 65535 || text[0] == '0' {
		return 0, errors.New("a port is 1 to 65535")
	}
	return int(n), nil
}
