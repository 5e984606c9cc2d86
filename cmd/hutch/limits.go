package main

import (
	"fmt"
	"strings"
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
	set   func(l *Limits, text string) error
}

// limitKeys are the keys below "limits" in a configuration file and, in upper
// case after HUTCH_LIMIT_, in the environment.
var limitKeys = []limitKey{
	{string(abi.LimitMemory), "64MiB", "linear memory of one call", func(l *Limits, s string) error {
		return setSize(&l.Call.MemoryBytes, s, abi.PageBytes, 4<<30)
	}},
	{string(abi.LimitWall), "30s", "wall time of one call", func(l *Limits, s string) error {
		return setDuration(&l.Call.Wall, s)
	}},
	{string(abi.LimitCompile), "30s", "wall time of compiling one module", func(l *Limits, s string) error {
		return setDuration(&l.Call.Compile, s)
	}},
	{string(abi.LimitInput), "4MiB", "arguments of one call", func(l *Limits, s string) error {
		return setSize(&l.Call.InputBytes, s, 1<<10, 1<<30)
	}},
	{string(abi.LimitOutput), "1MiB", "result of one call", func(l *Limits, s string) error {
		return setSize(&l.Call.OutputBytes, s, 1<<10, 1<<30)
	}},
	{string(abi.LimitLogLines), "100", "log lines of one call", func(l *Limits, s string) error {
		return setCount(&l.Call.LogLines, s, 1_000_000)
	}},
	{string(abi.LimitLogLine), "8KiB", "one log line", func(l *Limits, s string) error {
		return setSize(&l.Call.LogLineBytes, s, 1, 1<<20)
	}},
	{string(abi.LimitHostCalls), "1000", "gated operations of one call", func(l *Limits, s string) error {
		return setCount(&l.Call.HostCalls, s, 1_000_000)
	}},
	{string(abi.LimitConcurrency), "auto", "calls of one module that run at once; auto is four for each core", func(l *Limits, s string) error {
		if s == "auto" {
			l.AtOnce = 0
			return nil
		}
		return setCount(&l.AtOnce, s, 1000)
	}},
	{string(abi.LimitQueue), "256", "calls of one module that wait; one more is refused", func(l *Limits, s string) error {
		return setCount(&l.Queue, s, 1_000_000)
	}},
	{string(abi.LimitRate), "1000", "calls of one module that begin in a second; one more is refused", func(l *Limits, s string) error {
		return setCount(&l.PerSecond, s, 1_000_000)
	}},
	{"heartbeat", "5s", "how long a worker may answer nothing; whole seconds", func(l *Limits, s string) error {
		var d time.Duration
		if err := setDuration(&d, s); err != nil {
			return err
		}
		if d%time.Second != 0 {
			return fmt.Errorf("%s: allowed are whole seconds, 1s to 1h", s)
		}
		l.Heartbeat = d
		return nil
	}},
	{"deaths", "5", "workers that one module may take down before it is quarantined", func(l *Limits, s string) error {
		return setCount(&l.Deaths, s, 1000)
	}},
	{"deaths_within", "10m", "time in which they count", func(l *Limits, s string) error {
		return setDuration(&l.DeathWindow, s)
	}},
	{"body", "4MiB", "body of one HTTP request", func(l *Limits, s string) error {
		return setSize(&l.Body, s, 1<<10, 1<<30)
	}},
	{"connections", "256", "open HTTP connections", func(l *Limits, s string) error {
		return setCount(&l.Connections, s, 100_000)
	}},
	{"workers", "1GiB", "memory of all workers together", func(l *Limits, s string) error {
		return setSize(&l.Workers, s, 16<<20, 1<<40)
	}},
}

// defaultLimits returns the limits of someone who configured nothing.
func defaultLimits() (Limits, error) {
	var l Limits
	for _, key := range limitKeys {
		if err := key.set(&l, key.fallback); err != nil {
			return Limits{}, fmt.Errorf("default of %s: %w", key.name, err)
		}
	}
	return l, nil
}

// set sets the limit called name.
func (l *Limits) set(name, text string) error {
	for _, key := range limitKeys {
		if key.name == name {
			return key.set(l, text)
		}
	}
	return fmt.Errorf("no such limit; there are %s", strings.Join(limitNames(), ", "))
}

func limitNames() []string {
	names := make([]string, len(limitKeys))
	for i, key := range limitKeys {
		names[i] = key.name
	}
	return names
}

// limitsHelp lists the limits for a command's help.
func limitsHelp() string {
	var b strings.Builder
	b.WriteString("limits, as HUTCH_LIMIT_KEY in the environment or below \"limits:\" in a configuration file:\n")
	for _, key := range limitKeys {
		fmt.Fprintf(&b, "  %-16s  %s (default: %s)\n", key.name, key.means, key.fallback)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
