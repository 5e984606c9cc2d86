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
