package main

import "github.com/hutch-run/hutch/guests/sdk"

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
	Seconds  float64 `json:"seconds" doc:"Elapsed time, to 15 digits."`
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
		Seconds: float64(sign) * elapsed(from, to),
	}
	if sign < 0 {
		out.ISO8601 = "-" + out.ISO8601
	}
	return out, nil
}
