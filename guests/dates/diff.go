package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hutch-run/hutch/guests/sdk"
)

var diff = sdk.Define(sdk.Spec{
	Name:  "date_diff",
	Title: "Time between two dates",
	Description: "Returns how long it is from one date or time to another: as an ISO 8601 duration in calendar units (P1Y2M3DT4H), in whole " +
		"calendar days, in working days (Monday to Friday; holidays are not known), and exactly in seconds. Negative if to is " +
		"earlier. Use it for ages, deadlines and elapsed time.",
}, between)

type diffInput struct {
	From string `json:"from" doc:"As in date_convert: RFC 3339, 2024-03-10 14:30:00, 2024-03-10, @1710077400, or now."`
	To   string `json:"to" doc:"The same forms."`
	Zone string `json:"zone" doc:"The zone whose calendar counts, and that times without offset are in." default:"UTC"`
}

type diffOutput struct {
	ISO8601  string  `json:"iso8601" doc:"Such as P1Y2M3DT4H."`
	Days     int     `json:"days" doc:"Midnights between the two, in the zone."`
	Weekdays int     `json:"weekdays" doc:"Those of the days that begin on Monday to Friday; the first day counts, the last does not."`
	Seconds  float64 `json:"seconds" doc:"Elapsed time, exact to the nanosecond."`
}

func between(_ *sdk.Call, in diffInput) (diffOutput, error) {
	from, err := parseTime("from", in.From, "zone", in.Zone)
	if err != nil {
		return diffOutput{}, err
	}
	to, err := parseTime("to", in.To, "zone", in.Zone)
	if err != nil {
		return diffOutput{}, err
	}
	sign := 1
	if to.Before(from) {
		from, to, sign = to, from, -1
	}
	days := dayNumber(to) - dayNumber(from)
	out := diffOutput{
		ISO8601: period(from, to), Days: sign * days, Weekdays: sign * weekdays(from.Weekday(), days),
		Seconds: float64(sign) * (float64(to.Unix()-from.Unix()) + float64(to.Nanosecond()-from.Nanosecond())/1e9),
	}
	if sign < 0 {
		out.ISO8601 = "-" + out.ISO8601
	}
	return out, nil
}

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
	clock := to.Sub(addCalendar(from, months, days))
	var b strings.Builder
	b.WriteByte('P')
	unit(&b, months/12, "Y")
	unit(&b, months%12, "M")
	unit(&b, days, "D")
	if clock > 0 || b.Len() == 1 {
		b.WriteByte('T')
		unit(&b, int(clock.Hours()), "H")
		unit(&b, int(clock.Minutes())%60, "M")
		if s := math.Mod(clock.Seconds(), 60); s > 0 || clock == 0 {
			fmt.Fprintf(&b, "%gS", s)
		}
	}
	return b.String()
}

func unit(b *strings.Builder, n int, name string) {
	if n != 0 {
		fmt.Fprintf(b, "%d%s", n, name)
	}
}
