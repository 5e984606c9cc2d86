package main

import (
	"fmt"
	"time"

	"github.com/hutch-run/hutch/guests/sdk"
)

var convert = sdk.Define(sdk.Spec{
	Name:  "date_convert",
	Title: "Convert a date",
	Description: "Reads a date or time and returns it in a time zone, in every usual form: RFC 3339, date, time, weekday, Unix seconds, " +
		"ISO week, day of the year. Use it to convert between zones, to find a weekday, or, with time now, to learn the current " +
		"date. Daylight saving time is taken into account.",
}, convertTime)

type convertInput struct {
	Time string `json:"time" doc:"RFC 3339 (2024-03-10T14:30:00+01:00), 2024-03-10 14:30:00, 2024-03-10, Sun, 10 Mar 2024 14:30:00 +0100, @1710077400 (Unix seconds), or now."`
	Zone string `json:"zone" doc:"The zone that a time without offset is in: an IANA name such as Europe/Berlin, UTC, or an offset such as +05:30." default:"UTC"`
	To   string `json:"to,omitempty" doc:"The zone to return it in; the same forms. Default: zone."`
}

type moment struct {
	RFC3339   string `json:"rfc3339"`
	Date      string `json:"date" doc:"YYYY-MM-DD."`
	Time      string `json:"time" doc:"HH:MM:SS."`
	Weekday   string `json:"weekday"`
	Zone      string `json:"zone"`
	Offset    string `json:"offset" doc:"From UTC at that time, such as +01:00."`
	Unix      int64  `json:"unix" doc:"Seconds since 1970 in UTC."`
	ISOWeek   string `json:"iso_week" doc:"Such as 2024-W10."`
	DayOfYear int    `json:"day_of_year"`
}

// Text is the one form that has it all.
func (m moment) Text() string { return m.Weekday + ", " + m.RFC3339 + " (" + m.Zone + ")" }

func convertTime(_ *sdk.Call, in convertInput) (moment, error) {
	t, err := parseTime("time", in.Time, "zone", in.Zone)
	if err != nil {
		return moment{}, err
	}
	if in.To == "" {
		return momentOf(t)
	}
	zone, err := parseZone("to", in.To)
	if err != nil {
		return moment{}, err
	}
	return momentOf(t.In(zone))
}

// momentOf refuses years that RFC 3339 cannot write.
func momentOf(t time.Time) (moment, error) {
	if y := t.Year(); y < 0 || y > 9999 {
		return moment{}, fmt.Errorf("the result is in the year %d; years 0 to 9999 can be written", y)
	}
	year, week := t.ISOWeek()
	return moment{
		RFC3339: t.Format(time.RFC3339Nano), Date: t.Format(time.DateOnly), Time: t.Format(time.TimeOnly),
		Weekday: t.Weekday().String(), Zone: t.Location().String(), Offset: t.Format("-07:00"),
		Unix: t.Unix(), ISOWeek: fmt.Sprintf("%04d-W%02d", year, week), DayOfYear: t.YearDay(),
	}, nil
}
