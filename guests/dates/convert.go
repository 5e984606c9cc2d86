package main

import "github.com/hutch-run/hutch/guests/sdk"

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
