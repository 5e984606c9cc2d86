package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestDateAdd(t *testing.T) {
	const none = " is none; write ISO 8601 such as P1DT12H, or -P1D to subtract"
	for _, c := range []struct{ time, duration, zone, want string }{
		{"2024-01-31", "P1M", "UTC", "Thursday, 2024-02-29T00:00:00Z (UTC)"},
		{"2024-03-31", "-P1M", "UTC", "Thursday, 2024-02-29T00:00:00Z (UTC)"},
		{"2024-02-29", "P1Y", "UTC", "Friday, 2025-02-28T00:00:00Z (UTC)"},
		{"2024-03-30 12:00", "P1D", "Europe/Berlin", "Sunday, 2024-03-31T12:00:00+02:00 (Europe/Berlin)"},
		{"2024-03-30 12:00", "PT24H", "Europe/Berlin", "Sunday, 2024-03-31T13:00:00+02:00 (Europe/Berlin)"},
		{"2018-10-04 00:00", "P1M", "America/Sao_Paulo", "Sunday, 2018-11-04T01:00:00-02:00 (America/Sao_Paulo)"},
		{"2024-01-01", "P1W2DT3H4M5.5S", "UTC", "Wednesday, 2024-01-10T03:04:05.5Z (UTC)"},
		{"2024-01-01", "-PT0.001S", "UTC", "Sunday, 2023-12-31T23:59:59.999Z (UTC)"},
		{"2024-01-01", "P9000Y", "UTC", "the result is in the year 11024; years 0 to 9999 can be written"},
		{"2024-01-01", "PT99999999H", "UTC", "duration: too long; at most 9999 years of calendar time and 290 years in hours, minutes and seconds"},
		{"2024-01-01", "P0.5M", "UTC", "duration: only hours, minutes and seconds can have a fraction"},
		{"2024-01-01", "P1D2D", "UTC", `duration: "P1D2D"` + none},
		{"2024-01-01", "P1DT", "UTC", `duration: "P1DT"` + none},
		{"2024-01-01", "P", "UTC", `duration: "P"` + none},
		{"2024-01-01", "1 day", "UTC", `duration: "1 day"` + none},
	} {
		got := sdktest.Call(t, module, "date_add", addInput{c.time, c.duration, c.zone})
		if got.Text != c.want {
			t.Errorf("%s + %s in %s: got %q, want %q", c.time, c.duration, c.zone, got.Text, c.want)
		}
	}
}
