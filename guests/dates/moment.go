package main

import (
	"fmt"
	"time"
)

// moment is what the tools that return a time return.
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
