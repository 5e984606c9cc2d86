package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/cmd/hutch/telemetry"
)

// What hangs after the first signal is given up; what ends is not.
func TestEnforce(t *testing.T) {
	const never = 24 * time.Hour
	for _, c := range []struct {
		name          string
		asked, ended  time.Duration // after the start
		restored      bool
		gaveUp        bool
		enforcedUntil time.Duration
	}{
		{"no signal", never, time.Minute, false, false, time.Minute},
		{"ends after a signal", time.Minute, time.Minute + lastWait - 1, true, false, time.Minute + lastWait - 1},
		{"hangs after a signal", time.Minute, never, true, true, time.Minute + lastWait},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.asked)
				defer cancel()
				ended := make(chan struct{})
				defer time.AfterFunc(c.ended, func() { close(ended) }).Stop()
				restored, gaveUp, start := false, false, time.Now()
				enforce(ctx, func() { restored = true }, ended, func() { gaveUp = true })
				if restored != c.restored || gaveUp != c.gaveUp || time.Since(start) != c.enforcedUntil {
					t.Errorf("restored %v, gave up %v after %v", restored, gaveUp, time.Since(start))
				}
			})
		})
	}
	if lastWait <= grace+linger+drainFlush+telemetry.FlushTime {
		t.Error("a command that ends in order is given up")
	}
}
