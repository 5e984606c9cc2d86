package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/hutch-run/hutch/runtime/session"
)

// longest is the longest that something can be configured to be kept: ten years.
const longest = 3650 * day

// engineSettings are those of what all agents share: how many runs there are, and how
// long and up to which size threads are kept.
func engineSettings() []setting {
	return []setting{
		bound("runs.at_once", "16", "runs of all agents that there are at once", 10_000, func(o *session.Options) *int { return &o.PerProcess }),
		bound("runs.per_agent", "4", "runs of one agent that there are at once", 10_000, func(o *session.Options) *int { return &o.PerAgent }),
		bound("runs.queue", "256", "runs that wait; one more is refused", 100_000, func(o *session.Options) *int { return &o.Queue }),
		bound("runs.queue_per_thread", "16", "runs that wait in one thread; one more is refused", 10_000, func(o *session.Options) *int { return &o.QueuePerThread }),
		kept("threads.keep", "2160h", "how long a thread is kept that nobody uses, and what is known of a run", func(o *session.Options) *time.Duration { return &o.KeepThreads }),
		kept("threads.keep_events", "720h", "how long the events of a run are kept", func(o *session.Options) *time.Duration { return &o.KeepEvents }),
		bound("threads.per_principal", "10000", "threads of one principal; those used least lately go", 10_000_000, func(o *session.Options) *int { return &o.Threads }),
		bound("threads.messages", "20000", "messages of one thread; the oldest turns go", 10_000_000, func(o *session.Options) *int { return &o.Thread.Messages }),
		room("threads.bytes", "64MiB", "messages of one thread together; the oldest turns go", 64<<10, func(o *session.Options) *int64 { return &o.Thread.Bytes }),
		room("threads.event_bytes", "64MiB", "events of one thread together; those of the oldest runs go", 64<<10, func(o *session.Options) *int64 { return &o.EventBytes }),
		bound("threads.shown_messages", "200", "messages that a model is shown of a thread, the last ones", 10_000, func(o *session.Options) *int { return &o.Window.Messages }),
		room("threads.shown_bytes", "512KiB", "the same together; a model with little room for what it reads wants less", 1<<10, func(o *session.Options) *int64 { return &o.Window.Bytes }),
	}
}

// engineSetting is one of a key, whose variable is called as the key is.
func engineSetting(key, fallback, allowed, means string, set func(o *session.Options, text string) error) setting {
	return setting{key: key, env: "HUTCH_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_")), fallback: fallback, allowed: allowed, example: fallback, means: means,
		set: func(cfg *Config, values []string) error { return set(&cfg.Engine, values[0]) }}
}

func bound(key, fallback, means string, most int, field func(*session.Options) *int) setting {
	return engineSetting(key, fallback, fmt.Sprintf("1 to %d", most), means, func(o *session.Options, text string) error {
		return setCount(field(o), text, most)
	})
}

func room(key, fallback, means string, least int64, field func(*session.Options) *int64) setting {
	const most = 1 << 40
	return engineSetting(key, fallback, formatSize(least)+" to "+formatSize(most), means, func(o *session.Options, text string) error {
		return setSize(field(o), text, least, most)
	})
}

func kept(key, fallback, means string, field func(*session.Options) *time.Duration) setting {
	return engineSetting(key, fallback, fmt.Sprintf("1ms to %dh", longest/time.Hour), means, func(o *session.Options, text string) error {
		return setDurationUpTo(field(o), text, longest)
	})
}
