package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a sandbox has no zone files
)

// withOffset and local are the accepted forms, the most exact first.
var (
	withOffset = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700",
		time.RFC1123Z, "Mon, 02 Jan 2006 15:04:05 GMT"}
	local = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly}
)

// parseTime returns the time in the zone; field and zoneField name the
// arguments in errors.
func parseTime(field, value, zoneField, zone string) (time.Time, error) {
	in, err := parseZone(zoneField, zone)
	if err != nil {
		return time.Time{}, err
	}
	value = strings.TrimSpace(value)
	if value == "now" {
		return time.Now().Truncate(time.Second).In(in), nil
	}
	if seconds, ok := strings.CutPrefix(value, "@"); ok {
		if n, err := strconv.ParseInt(seconds, 10, 64); err == nil && -62167219200 <= n && n <= 253402300799 {
			return time.Unix(n, 0).In(in), nil
		}
		return time.Time{}, fmt.Errorf("%s: %q: @ takes whole Unix seconds, from years 0 to 9999", field, value)
	}
	for _, layout := range withOffset {
		if t, err := time.Parse(layout, value); err == nil {
			return t.In(in), nil
		}
	}
	for _, layout := range local {
		if t, err := time.Parse(layout, value); err == nil {
			return inZone(t, in), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s: %q is no date that exists in a known form; write 2024-03-10, 2024-03-10T14:30:00+01:00, @1710077400 or now", field, value)
}

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
