package router

import (
	"slices"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// Listen says what an agent listens to.
type Listen string

// What there is to listen to. Of tasks: those that are assigned to it; all, so that it takes
// free ones by itself when it has nothing to do; none. Of chats: messages that mention it;
// all; none.
const (
	All      Listen = "all"
	Mentions Listen = "mentions"
	Assigned Listen = "assigned"
	None     Listen = "none"
)

// A Use is what becomes of an event.
type Use int

// The uses.
const (
	Ignore   Use = iota // nothing is known of it
	Internal            // it changes what the router knows, and no model sees it
	Hear                // it is for a prompt, and kept in the inbox
	Work                // it is for a prompt, and becomes a turn
)

func (u Use) String() string { return []string{"ignored", "internal", "heard", "a turn"}[u] }

// An About is what [Decide] goes by.
type About struct {
	Event       string // the canonical name, or one of the kinds
	Tasks, Chat Listen
	// Mine: the task is the agent's.
	Mine bool
	// Own: the agent itself did it.
	Own bool
	// Mentioned: the message names the agent. All: it names everybody.
	Mentioned, All bool
}

// A rule is one row of the table: what becomes of an event if what it asks for holds.
type rule struct {
	event string
	holds func(About) bool // nil holds always
	use   Use
}

// rules is the table. It is searched in order; an event that is not in it is ignored.
//
// A message that the agent wrote itself never comes back to it. What it assigns to itself
// does: that is work which it has planned, as if another had. Of a task that it took itself
// there is no turn, because the turn that took it works on it.
func rules() []rule {
	return []rule{
		{tracker.EventTaskAssigned, func(a About) bool { return a.Mine && a.Tasks != None }, Work},
		{tracker.EventTaskAssigned, nil, Internal},
		{KindUnblocked, func(a About) bool { return a.Mine && a.Tasks != None }, Work},
		{KindUnblocked, nil, Internal},
		{tracker.EventTaskTaken, nil, Internal},
		{tracker.EventTaskStatus, nil, Internal},
		{tracker.EventTaskRejected, nil, Internal},
		{tracker.EventAgentStatus, nil, Internal},
		{tracker.EventResync, nil, Internal},
		{tracker.EventTaskComment, func(a About) bool { return a.Own }, Internal},
		{tracker.EventTaskComment, named, Hear},
		{tracker.EventTaskComment, nil, Internal},
		{tracker.EventChatMessage, func(a About) bool { return a.Own || a.Chat == None }, Internal},
		{tracker.EventChatMessage, func(a About) bool { return a.Chat == All || named(a) }, Hear},
		{tracker.EventChatMessage, nil, Internal},
	}
}

// named reports whether a message names the agent. One that names everybody does so only if
// the agent listens to everything.
func named(a About) bool { return a.Mentioned || a.All && a.Chat == All }

// Decide looks an event up in the table.
func Decide(a About) Use {
	all := rules()
	i := slices.IndexFunc(all, func(r rule) bool { return r.event == a.Event && (r.holds == nil || r.holds(a)) })
	if i < 0 {
		return Ignore
	}
	return all[i].use
}
