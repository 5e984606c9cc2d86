package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestDateDiff(t *testing.T) {
	for _, c := range []struct {
		from, to, zone string
		want           diffOutput
	}{
		{"2024-01-31", "2024-03-01", "UTC", diffOutput{"P1M1D", 30, 22, 30 * 86400}},
		{"2024-03-01", "2024-01-31", "UTC", diffOutput{"-P1M1D", -30, -22, -30 * 86400}},
		{"2024-03-30 12:00", "2024-03-31 12:00", "Europe/Berlin", diffOutput{"P1D", 1, 0, 23 * 3600}},
		{"2023-12-31 23:59:58.5", "2024-01-01 00:00:00", "UTC", diffOutput{"PT1.5S", 1, 0, 1.5}},
		{"2024-01-01 00:00:00.9", "2024-01-01 01:01:02", "UTC", diffOutput{"PT1H1M1.1S", 0, 0, 3661.1}},
		{"2024-01-01 00:00:00.9", "2024-01-01 00:00:01", "UTC", diffOutput{"PT0.1S", 0, 0, 0.1}},
		{"2024-01-01 00:00:00", "2024-01-01 00:00:00.000000001", "UTC", diffOutput{"PT0.000000001S", 0, 0, 1e-9}},
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
