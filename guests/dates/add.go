package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sosodev/duration"

	"github.com/hutch-run/hutch/guests/sdk"
)

var add = sdk.Define(sdk.Spec{
	Name:  "date_add",
	Title: "Add to a date",
	Description: "Adds an ISO 8601 duration to a date or time, or subtracts it, and returns the result as date_convert does. Use it for due " +
		"dates, expiries and ages. Years, months, weeks and days are those of the calendar in the zone: 31 January plus P1M is the " +
		"last of February, and P1D keeps the time of day over a change to daylight saving time; PT24H does not.",
}, addTime)

type addInput struct {
	Time     string `json:"time" doc:"As in date_convert: RFC 3339, 2024-03-10 14:30:00, 2024-03-10, @1710077400, or now."`
	Duration string `json:"duration" doc:"ISO 8601, such as P1Y2M10DT2H30M or P2W; -P1D subtracts." max:"100"`
	Zone     string `json:"zone" doc:"The zone to calculate in: an IANA name, UTC, or an offset such as +05:30. A time with another offset is converted to it first." default:"UTC"`
}

func addTime(_ *sdk.Call, in addInput) (moment, error) {
	t, err := parseTime("time", in.Time, "zone", in.Zone)
	if err != nil {
		return moment{}, err
	}
	d, err := duration.Parse(in.Duration)
	if err != nil || !wellFormed(in.Duration) {
		return moment{}, fmt.Errorf("duration: %q is none; write ISO 8601 such as P1DT12H, or -P1D to subtract", in.Duration)
	}
	if t, err = addDuration(t, d); err != nil {
		return moment{}, err
	}
	return momentOf(t)
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

// addCalendar moves t by whole months, keeping the day of the month or taking
// the month's last, then by whole days; the time of day stays.
func addCalendar(t time.Time, months, days int) time.Time {
	if months == 0 && days == 0 {
		return t
	}
	year, month, day := t.Date()
	last := time.Date(year, month+time.Month(months)+1, 0, 0, 0, 0, 0, time.UTC)
	hour, minute, second := t.Clock()
	return inZone(time.Date(last.Year(), last.Month(), min(day, last.Day())+days,
		hour, minute, second, t.Nanosecond(), time.UTC), t.Location())
}
