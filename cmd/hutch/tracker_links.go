package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hutch-run/hutch/runtime/router"
)

// linksPath is where an owner tells how its agents are connected to their tracker.
const linksPath = "/control/v1/links"

// toldLinks is the answer there.
type toldLinks struct {
	Links []toldLink `json:"links"`
}

// tellLinks answers at linksPath.
func (a *App) tellLinks(w http.ResponseWriter, _ *http.Request) {
	tell(w, toldLinks{a.crew.links()}, nil)
}

// checkAgents asks a hutch that runs how its agents are connected. Without one there is
// nothing to say.
func checkAgents(ctx context.Context, who patient) (findings []finding) {
	ctx, cancel := context.WithTimeout(ctx, pinsPatience)
	defer cancel()
	var told toldLinks
	if err := askOwner(ctx, state{who.cfg.State}, linksPath, &told); err != nil {
		return nil
	}
	for _, l := range told.Links {
		findings = append(findings, l.finding())
	}
	return findings
}

// finding is what "hutch doctor" says of an agent's connection.
func (l toldLink) finding() finding {
	f := finding{Check: "agent " + l.Agent, Status: verdictOK, Found: l.State}
	if l.Tracker != "" {
		f.Found += " to " + l.Tracker
	}
	if l.Slug != l.Agent {
		f.Found += " as " + l.Slug
	}
	if len(l.Tasks) > 0 {
		f.Found += ", working on " + strings.Join(l.Tasks, ", ")
	}
	if l.Why != "" {
		f.Found += ": " + l.Why
	}
	switch l.State {
	case linkLost:
		f.Status, f.Do = verdictWarn, "see whether the tracker runs: the agent tries it again by itself, and asks for its tasks then"
	case linkEnded:
		f.Status, f.Do = verdictFail, "mend what it says, then start hutch again"
	}
	return f
}

// turned counts a turn that something in a tracker began.
func (m *metrics) turned(agent string, err error) {
	m.turns.WithLabelValues(agent, turnStatus(err)).Inc()
}

func turnStatus(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, router.ErrNotBegun):
		return "not_begun"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return "failed"
}

// newTurns counts them.
func newTurns() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hutch_tracker_turns_total", Help: "Turns of agents that something in a tracker began, by agent and by how they ended: done, failed, interrupted, not_begun.",
	}, []string{"agent", "status"})
}

// The figures of agents, read off a crew when they are asked for.
func linkDescriptions() (connected, working *prometheus.Desc) {
	return prometheus.NewDesc("hutch_tracker_agent_connected", "Whether an agent is connected to its tracker: 1 or 0.", []string{"agent"}, nil),
		prometheus.NewDesc("hutch_tracker_tasks_running", "Tasks that an agent works on.", []string{"agent"}, nil)
}
