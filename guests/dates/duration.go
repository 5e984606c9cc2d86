package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sosodev/duration"
)

func parseDuration(text string) (*duration.Duration, error) {
	d, err := duration.Parse(text)
	if err != nil || !wellFormed(text) {
		return nil, fmt.Errorf("duration: %q is none; write ISO 8601 such as P1DT12H, or -P1D to subtract", text)
	}
	return d, nil
}

// wellFormed refuses what the parser lets through: a unit twice, a T before
// nothing, no unit at all.
func wellFormed(d string) bool {
	date, clock, timed := strings.Cut(d, "T")
	units := 0
	for part, names := range map[string]string{date: "YMWD", clock: "HMS"} {
		for _, name := range names {
			n := strings.Count(part, string(name))
			if n > 1 {
				return false
			}
			units += n
		}
	}
	return units > 0 && (!timed || clock != "")
}

// addDuration adds the calendar's part first, as ISO 8601 writes it, then the clock's.
func addDuration(t time.Time, d *duration.Duration) (time.Time, error) {
	sign := 1.0
	if d.Negative {
		sign = -1
	}
	months, days := sign*(12*d.Years+d.Months), sign*(7*d.Weeks+d.Days)
	seconds := sign * (3600*d.Hours + 60*d.Minutes + d.Seconds)
	if months != math.Trunc(months) || days != math.Trunc(days) {
		return t, errors.New("duration: only hours, minutes and seconds can have a fraction")
	}
	if math.Abs(months) > 12*9999 || math.Abs(days) > 366*9999 || math.Abs(seconds) > 290*365*86400 {
		return t, errors.New("duration: too long; at most 9999 years of calendar time and 290 years in hours, minutes and seconds")
	}
	t = addCalendar(t, int(months), int(days))
	return t.Add(time.Duration(math.Round(seconds * float64(time.Second)))), nil
}
