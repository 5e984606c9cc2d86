package main

import "github.com/hutch-run/hutch/guests/sdk"

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
	d, err := parseDuration(in.Duration)
	if err != nil {
		return moment{}, err
	}
	if t, err = addDuration(t, d); err != nil {
		return moment{}, err
	}
	return momentOf(t)
}
