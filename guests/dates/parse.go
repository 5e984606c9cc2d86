package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
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
