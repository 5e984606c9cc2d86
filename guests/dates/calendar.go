package main

import "time"

// dayNumber counts the days of the calendar that t's zone shows.
func dayNumber(t time.Time) int {
	y, m, d := t.Date()
	return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// weekdays counts Monday to Friday in a run of days.
func weekdays(first time.Weekday, days int) int {
	n := days / 7 * 5
	for i := range days % 7 {
		if d := (int(first) + i) % 7; d != int(time.Saturday) && d != int(time.Sunday) {
			n++
		}
	}
	return n
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
