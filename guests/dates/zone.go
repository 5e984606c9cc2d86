package main

import (
	"fmt"
	"time"
	_ "time/tzdata" // a sandbox has no zone files
)

// parseZone takes an IANA name or an offset. Local would be the host's zone,
// which is nobody's business.
func parseZone(field, name string) (*time.Location, error) {
	if t, err := time.Parse("-07:00", name); err == nil {
		_, offset := t.Zone()
		return time.FixedZone(name, offset), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("%s: %q is no known zone; use an IANA name such as Europe/Berlin, UTC, or an offset such as +05:30", field, name)
	}
	return zone, nil
}

// inZone returns when a clock in the zone shows what t does in UTC. What it
// skips, for daylight saving time, counts on from before: 02:30 is 03:30. The
// standard library may go back instead, even to the day before.
func inZone(t time.Time, zone *time.Location) time.Time {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	local := time.Date(year, month, day, hour, minute, second, t.Nanosecond(), zone)
	if local.Hour() == hour && local.Minute() == minute {
		return local
	}
	_, before := local.Add(-12 * time.Hour).Zone()
	return t.Add(-time.Duration(before) * time.Second).In(zone)
}
