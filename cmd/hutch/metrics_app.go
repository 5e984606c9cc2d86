package main

import (
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/protocol/trackerhub"
	"github.com/prometheus/client_golang/prometheus"
)

// appCollector reads figures off an [App] when they are asked for, so that
// nothing has to be kept up to date.
type appCollector struct {
	app                        *App
	workers, rss, starts, ends *prometheus.Desc
	running, reruns, late      *prometheus.Desc
	modules, tools             *prometheus.Desc
	quarantined                *prometheus.Desc
	connected, working         *prometheus.Desc
}

func newAppCollector(a *App) *appCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	connected, working := linkDescriptions()
	return &appCollector{
		connected: connected, working: working,
		app:         a,
		workers:     desc("hutch_workers", "Worker processes alive."),
		rss:         desc("hutch_workers_resident_bytes", "Resident memory of all workers when it was last measured."),
		starts:      desc("hutch_worker_starts_total", "Workers started."),
		ends:        desc("hutch_worker_ends_total", "Workers that ended, by reason.", "reason"),
		running:     desc("hutch_calls_running", "Calls inside the worker pool, waiting ones included."),
		reruns:      desc("hutch_call_reruns_total", "Calls run again because their worker was lost through no fault of theirs."),
		late:        desc("hutch_call_late_answers_total", "Answers that came when their caller had left."),
		modules:     desc("hutch_modules", "Modules in the folders, by status.", "status"),
		quarantined: desc("hutch_modules_quarantined", "Modules that may not run because they kept taking workers down."),
		tools:       desc("hutch_tools", "Tools that can be called."),
	}
}

// Describe implements [prometheus.Collector].
func (c *appCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.workers, c.rss, c.starts, c.ends, c.running, c.reruns, c.late, c.modules, c.tools, c.quarantined, c.connected, c.working} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *appCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	s := c.app.pool.Stats()
	gauge(c.workers, float64(s.Workers))
	gauge(c.rss, float64(s.RSS))
	gauge(c.running, float64(s.Running))
	count(c.starts, float64(s.Starts))
	count(c.reruns, float64(s.Reruns))
	count(c.late, float64(s.Late))
	for reason, n := range s.Ends {
		count(c.ends, float64(n), reason)
	}
	for status, n := range c.app.byStatus() {
		gauge(c.modules, float64(n), string(status))
	}
	gauge(c.quarantined, float64(len(c.app.modules.Quarantined())))
	gauge(c.tools, float64(len(c.app.modules.List(tool.Caller{}))))
	for _, l := range c.app.crew.links() {
		up := 0.0
		if l.State == linkConnected {
			up = 1
		}
		gauge(c.connected, up, l.Agent)
		gauge(c.working, float64(len(l.Tasks)), l.Agent)
	}
}

// byStatus counts modules; every status is there.
func (a *App) byStatus() map[tool.Status]int {
	n := map[tool.Status]int{tool.Ready: 0, tool.Held: 0, tool.Rejected: 0}
	for _, m := range a.modules.Modules() {
		n[m.Status]++
	}
	return n
}

// trackerCollector reads figures off the socket of a tracker.
type trackerCollector struct {
	hub                            *trackerhub.Hub
	connected, parked, slow, alien *prometheus.Desc
}

func newTrackerCollector(hub *trackerhub.Hub) *trackerCollector {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &trackerCollector{
		hub:       hub,
		connected: desc("hutch_tracker_sockets", "Agents connected to the tracker, those included that have not said yet who they are."),
		parked:    desc("hutch_tracker_events_parked_total", "Events that were given up because no agent acknowledged them."),
		slow:      desc("hutch_tracker_sockets_slow_total", "Connections to the tracker that were ended because nobody read."),
		alien:     desc("hutch_tracker_frames_unknown_total", "Frames that agents sent of a type that there is none of."),
	}
}

// Describe implements [prometheus.Collector].
func (c *trackerCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.connected, c.parked, c.slow, c.alien} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *trackerCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.hub.Stats()
	ch <- prometheus.MustNewConstMetric(c.connected, prometheus.GaugeValue, float64(s.Connections))
	ch <- prometheus.MustNewConstMetric(c.parked, prometheus.CounterValue, float64(s.Parked))
	ch <- prometheus.MustNewConstMetric(c.slow, prometheus.CounterValue, float64(s.Slow))
	ch <- prometheus.MustNewConstMetric(c.alien, prometheus.CounterValue, float64(s.Unknown))
}
