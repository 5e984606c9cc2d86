package main

import (
	"testing"
	"time"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestDateConvert(t *testing.T) {
	for args, want := range map[string]string{
		`{"time":"2024-03-10"}`:                "Sunday, 2024-03-10T00:00:00Z (UTC)",
		`{"time":"2024-03-10T14:30:00+01:00"}`: "Sunday, 2024-03-10T13:30:00Z (UTC)",
		`{"time":"2024-07-01 12:00","zone":"America/New_York","to":"Europe/Berlin"}`: "Monday, 2024-07-01T18:00:00+02:00 (Europe/Berlin)",
		`{"time":"2024-01-01 12:00","zone":"America/New_York","to":"+05:30"}`:        "Monday, 2024-01-01T22:30:00+05:30 (+05:30)",
		`{"time":"2024-03-31T02:30","zone":"Europe/Berlin"}`:                         "Sunday, 2024-03-31T03:30:00+02:00 (Europe/Berlin)",
		`{"time":"@-1.5"}`:                           `time: "@-1.5": @ takes whole Unix seconds, from years 0 to 9999`,
		`{"time":"@1709991000"}`:                     "Saturday, 2024-03-09T13:30:00Z (UTC)",
		`{"time":"Sun, 10 Mar 2024 14:30:00 +0100"}`: "Sunday, 2024-03-10T13:30:00Z (UTC)",
		`{"time":"Sun, 10 Mar 2024 14:30:00 GMT"}`:   "Sunday, 2024-03-10T14:30:00Z (UTC)",
		`{"time":"2024-02-30"}`:                      `time: "2024-02-30" is no date that exists in a known form; write 2024-03-10, 2024-03-10T14:30:00+01:00, @1710077400 or now`,
		`{"time":"10.3.2024"}`:                       `time: "10.3.2024" is no date that exists in a known form; write 2024-03-10, 2024-03-10T14:30:00+01:00, @1710077400 or now`,
		`{"time":"2024-03-10","zone":"Berlin"}`:      `zone: "Berlin" is no known zone; use an IANA name such as Europe/Berlin, UTC, or an offset such as +05:30`,
		`{"time":"2024-03-10","to":"Local"}`:         `to: "Local" is no known zone; use an IANA name such as Europe/Berlin, UTC, or an offset such as +05:30`,
		`{"time":"9999-12-31T23:00:00-02:00"}`:       `the result is in the year 10000; years 0 to 9999 can be written`,
	} {
		if got := sdktest.Call(t, module, "date_convert", args); got.Text != want {
			t.Errorf("%s: got %q, want %q", args, got.Text, want)
		}
	}
}

func TestDateConvertEveryForm(t *testing.T) {
	var got moment
	sdktest.Call(t, module, "date_convert", `{"time":"2024-12-30T01:02:03.5Z","to":"Asia/Tokyo"}`).Into(t, &got)
	want := moment{"2024-12-30T10:02:03.5+09:00", "2024-12-30", "10:02:03", "Monday", "Asia/Tokyo", "+09:00", 1735520523, "2025-W01", 365}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDateNow(t *testing.T) {
	var got moment
	before := time.Now().Unix()
	sdktest.Call(t, module, "date_convert", `{"time":"now"}`).Into(t, &got)
	if got.Unix < before || got.Unix > time.Now().Unix() {
		t.Errorf("now is %d", got.Unix)
	}
}

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

func TestDateDiff(t *testing.T) {
	for _, c := range []struct {
		from, to, zone string
		want           diffOutput
	}{
		{"2024-01-31", "2024-03-01", "UTC", diffOutput{"P1M1D", 30, 22, 30 * 86400}},
		{"2024-03-01", "2024-01-31", "UTC", diffOutput{"-P1M1D", -30, -22, -30 * 86400}},
		{"2024-03-30 12:00", "2024-03-31 12:00", "Europe/Berlin", diffOutput{"P1D", 1, 0, 23 * 3600}},
		{"2023-12-31 23:59:58.5", "2024-01-01 00:00:00", "UTC", diffOutput{"PT1.5S", 1, 0, 1.5}},
		{"1969-12-31", "2020-02-29T10:05:00Z", "UTC", diffOutput{"P50Y2MT10H5M", 18322, 13088, 1582970700 + 86400}},
		{"2024-01-01", "2024-01-01", "UTC", diffOutput{"PT0S", 0, 0, 0}},
		{"2024-01-01T00:00:00Z", "2024-01-01T23:00:00Z", "Asia/Tokyo", diffOutput{"PT23H", 1, 1, 23 * 3600}},
	} {
		var got diffOutput
		sdktest.Call(t, module, "date_diff", diffInput{c.from, c.to, c.zone}).Into(t, &got)
		if got != c.want {
			t.Errorf("%s to %s in %s: got %+v, want %+v", c.from, c.to, c.zone, got, c.want)
		}
	}
	if got := sdktest.Call(t, module, "date_diff", diffInput{"x", "y", "UTC"}); !got.IsError {
		t.Errorf("got %q", got.Text)
	}
}
