package main

import (
	"testing"
	"time"
)

// FuzzPeriod checks that what date_diff says, date_add takes back to the end.
func FuzzPeriod(f *testing.F) {
	f.Add(int64(1706659200), int64(1709251200), uint32(0), uint8(0))
	f.Add(int64(1538622000), int64(1541300400), uint32(1), uint8(1))   // a midnight that Sao Paulo skips
	f.Add(int64(1729902600), int64(1729992600), uint32(1e8), uint8(2)) // an hour that Berlin has twice
	zones := []string{"UTC", "America/Sao_Paulo", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"}
	f.Fuzz(func(t *testing.T, a, b int64, nanoseconds uint32, z uint8) {
		zone, err := parseZone("zone", zones[int(z)%len(zones)])
		if err != nil {
			t.Fatal(err)
		}
		const most = 200 * 365 * 86400
		from, to := time.Unix(min(a%most, b%most), 0).In(zone), time.Unix(max(a%most, b%most), int64(nanoseconds)).In(zone)
		text := period(from, to)
		d, err := parseDuration(text)
		if err != nil {
			t.Fatalf("%s to %s: %v", from, to, err)
		}
		if back, err := addDuration(from, d); err != nil || !back.Equal(to) {
			t.Errorf("%s to %s is %s, which leads to %s, %v", from, to, text, back, err)
		}
	})
}
