package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// period writes how long it is from the earlier time to the later in the largest
// calendar units; added to from, it gives to again.
func period(from, to time.Time) string {
	months := (to.Year()-from.Year())*12 + int(to.Month()-from.Month())
	if addCalendar(from, months, 0).After(to) {
		months--
	}
	days := dayNumber(to) - dayNumber(addCalendar(from, months, 0))
	if addCalendar(from, months, days).After(to) {
		days--
	}
	date := unit(months/12, "Y") + unit(months%12, "M") + unit(days, "D")
	clock := to.Sub(addCalendar(from, months, days))
	if clock == 0 && date != "" {
		return "P" + date
	}
	return "P" + date + "T" + clockUnits(clock)
}

// clockUnits writes hours, minutes and seconds, these with their exact fraction.
func clockUnits(d time.Duration) string {
	out := unit(int(d/time.Hour), "H") + unit(int(d/time.Minute)%60, "M")
	if rest := d % time.Minute; rest > 0 || d == 0 {
		seconds := strings.TrimRight(strconv.FormatFloat(rest.Seconds(), 'f', 9, 64), "0")
		out += strings.TrimSuffix(seconds, ".") + "S"
	}
	return out
}

func unit(n int, name string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n) + name
}

// elapsed returns seconds, rounded once: going through the digits keeps the
// difference of 0.9 and 1 from being 0.09999999999999998.
func elapsed(from, to time.Time) float64 {
	seconds, fraction := to.Unix()-from.Unix(), to.Nanosecond()-from.Nanosecond()
	if fraction < 0 {
		seconds, fraction = seconds-1, fraction+1e9
	}
	f, _ := strconv.ParseFloat(fmt.Sprintf("%d.%09d", seconds, fraction), 64) // digits always parse
	return f
}
