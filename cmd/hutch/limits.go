package main

import (
	"fmt"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Limits are the limits that an operator may set. A zero field means the
// default given in limitKeys.
type Limits struct {
	Call abi.Limits
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
	{"memory", "64MiB", "linear memory of one call", func(l *Limits, s string) error {
		return setSize(&l.Call.MemoryBytes, s, abi.PageBytes, 4<<30)
	}},
	{"timeout", "30s", "wall time of one call", func(l *Limits, s string) error {
		return setDuration(&l.Call.Wall, s)
	}},
	{"compile", "30s", "wall time of compiling one module", func(l *Limits, s string) error {
		return setDuration(&l.Call.Compile, s)
	}},
	{"input", "4MiB", "arguments of one call", func(l *Limits, s string) error {
		return setSize(&l.Call.InputBytes, s, 1<<10, 1<<30)
	}},
	{"output", "1MiB", "result of one call", func(l *Limits, s string) error {
		return setSize(&l.Call.OutputBytes, s, 1<<10, 1<<30)
	}},
	{"log_lines", "100", "log lines of one call", func(l *Limits, s string) error {
		return setCount(&l.Call.LogLines, s, 1_000_000)
	}},
	{"log_line", "8KiB", "one log line", func(l *Limits, s string) error {
		return setSize(&l.Call.LogLineBytes, s, 1, 1<<20)
	}},
	{"host_calls", "1000", "gated operations of one call", func(l *Limits, s string) error {
		return setCount(&l.Call.HostCalls, s, 1_000_000)
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
		fmt.Fprintf(&b, "  %-11s  %s (default: %s)\n", key.name, key.means, key.fallback)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
