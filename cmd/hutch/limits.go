package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Limits are the limits that an operator may set. A zero field means the
// default given in limitKeys.
type Limits struct {
	Call abi.Limits
	// AtOnce is how many calls of one module run at once; zero leaves it to the
	// number of cores. Queue more may wait, and PerSecond may begin in a second.
	AtOnce, Queue, PerSecond int
	// Heartbeat is how long a worker may answer nothing.
	Heartbeat time.Duration
	// Deaths within DeathWindow are how many workers one module may take down
	// before it is quarantined.
	Deaths      int
	DeathWindow time.Duration
	// Body is the largest accepted HTTP request body, in bytes.
	Body int64
	// Connections is how many HTTP connections may be open at once.
	Connections int
	// Workers is how much memory all worker processes may use together, in
	// bytes; idle ones end first.
	Workers int64
}

// limitKey is one limit as a configuration names it.
type limitKey struct {
	name string
	// fallback is the default as a person would write it.
	fallback string
	// means says what is bounded; help shows it.
	means string
	bounds
}

// bounds are the values that a limit may have: what help says, and what is checked.
type bounds struct {
	// allowed is the smallest and the largest value, and what else there is.
	allowed string
	set     func(l *Limits, text string) error
}

func sizes[T int | int64](least, most int64, field func(*Limits) *T) bounds {
	return bounds{formatSize(least) + " to " + formatSize(most), func(l *Limits, s string) error {
		return setSize(field(l), s, least, most)
	}}
}

func counts[T int | int64](most T, field func(*Limits) *T) bounds {
	return bounds{fmt.Sprintf("1 to %d", most), func(l *Limits, s string) error {
		return setCount(field(l), s, most)
	}}
}

func durations(field func(*Limits) *time.Duration) bounds {
	return bounds{"1ms to 1h", func(l *Limits, s string) error { return setDuration(field(l), s) }}
}

// or allows a word besides, which stands for zero.
func (b bounds) or(word string, field func(*Limits) *int) bounds {
	return bounds{word + ", " + b.allowed, func(l *Limits, s string) error {
		if s == word {
			*field(l) = 0
			return nil
		}
		if err := b.set(l, s); err != nil {
			return errors.New(strings.Replace(err.Error(), "allowed are ", "allowed are "+word+", ", 1))
		}
		return nil
	}}
}

// seconds are durations in whole ones.
func seconds(field func(*Limits) *time.Duration) bounds {
	const allowed = "1s to 1h, whole seconds"
	return bounds{allowed, func(l *Limits, s string) error {
		var d time.Duration
		if err := setDuration(&d, s); err != nil {
			return err
		}
		if d%time.Second != 0 {
			return fmt.Errorf("%s: allowed are %s", s, allowed)
		}
		*field(l) = d
		return nil
	}}
}

// limitKeys are the keys below "limits" in a configuration file and, in upper
// case after HUTCH_LIMIT_, in the environment.
var limitKeys = []limitKey{
	{string(abi.LimitMemory), "64MiB", "linear memory of one call",
		sizes(abi.PageBytes, 4<<30, func(l *Limits) *int64 { return &l.Call.MemoryBytes })},
	{string(abi.LimitWall), "30s", "wall time of one call",
		durations(func(l *Limits) *time.Duration { return &l.Call.Wall })},
	{string(abi.LimitCompile), "30s", "wall time of compiling one module",
		durations(func(l *Limits) *time.Duration { return &l.Call.Compile })},
	{string(abi.LimitInput), "4MiB", "arguments of one call",
		sizes(1<<10, 1<<30, func(l *Limits) *int { return &l.Call.InputBytes })},
	{string(abi.LimitOutput), "1MiB", "result of one call",
		sizes(1<<10, 1<<30, func(l *Limits) *int { return &l.Call.OutputBytes })},
	{string(abi.LimitLogLines), "100", "log lines of one call",
		counts(1_000_000, func(l *Limits) *int { return &l.Call.LogLines })},
	{string(abi.LimitLogLine), "8KiB", "one log line",
		sizes(1, 1<<20, func(l *Limits) *int { return &l.Call.LogLineBytes })},
	{string(abi.LimitHostCalls), "1000", "gated operations of one call",
		counts(1_000_000, func(l *Limits) *int { return &l.Call.HostCalls })},
	{string(abi.LimitFuel), "50000000000", "computing of one call, about one for each instruction",
		counts(1_000_000_000_000_000, func(l *Limits) *int64 { return &l.Call.Fuel })},
	{string(abi.LimitConcurrency), "auto", "calls of one module that run at once; auto is four for each core",
		counts(1000, atOnce).or("auto", atOnce)},
	{string(abi.LimitQueue), "256", "calls of one module that wait; one more is refused",
		counts(1_000_000, func(l *Limits) *int { return &l.Queue })},
	{string(abi.LimitRate), "1000", "calls of one module that begin in a second; one more is refused",
		counts(1_000_000, func(l *Limits) *int { return &l.PerSecond })},
	{"heartbeat", "5s", "how long a worker may answer nothing",
		seconds(func(l *Limits) *time.Duration { return &l.Heartbeat })},
	{"deaths", "5", "workers that one module may take down before it is quarantined",
		counts(1000, func(l *Limits) *int { return &l.Deaths })},
	{"deaths_within", "10m", "time in which they count",
		durations(func(l *Limits) *time.Duration { return &l.DeathWindow })},
	{"body", "4MiB", "body of one HTTP request",
		sizes(1<<10, 1<<30, func(l *Limits) *int64 { return &l.Body })},
	{"connections", "256", "open HTTP connections",
		counts(100_000, func(l *Limits) *int { return &l.Connections })},
	{"workers", "1GiB", "memory of all workers together",
		sizes(16<<20, 1<<40, func(l *Limits) *int64 { return &l.Workers })},
}

func atOnce(l *Limits) *int { return &l.AtOnce }

// limitsHelp lists the limits for a command's help, with default and bounds.
func limitsHelp() string {
	var b strings.Builder
	b.WriteString("limits, as HUTCH_LIMIT_KEY in the environment or below \"limits:\" in a configuration file:\n")
	table := tabwriter.NewWriter(&b, 0, 0, tableGap, ' ', 0)
	fmt.Fprintln(table, "  key\tdefault\tallowed\tbounds")
	for _, key := range limitKeys {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", key.name, key.fallback, key.allowed, key.means)
	}
	_ = table.Flush() // a builder takes everything
	return strings.TrimSuffix(b.String(), "\n")
}
