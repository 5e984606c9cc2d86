package session

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// A Ref names a thread. Its id is the conversation's, and its owner's own: the same id
// of another owner is another thread, so nobody learns of one by trying its id.
type Ref struct {
	Owner string // a principal
	ID    string
}

// A Thread is a conversation that is kept, without its messages.
type Thread struct {
	Ref
	Agent string // that began it
	Title string
	// Head is the number of the last change; events are numbered by it.
	Head             int64
	Created, Updated time.Time
	// State is what agent and client share, as JSON; empty is none.
	State json.RawMessage
	// Waiting is what the last run left to be answered.
	Waiting Waiting
	// Messages counts its messages, and Bytes what they take; EventBytes is what its
	// events take.
	Messages, Bytes, EventBytes int64
}

// Waiting is what a run left to be answered by the next one. Whatever is not answered
// then never will be.
type Waiting struct {
	Run string `json:"run,omitempty"`
	// Client are calls that the client is to answer, in their order.
	Client []string `json:"client,omitempty"`
	// Person are questions to a person.
	Person []event.Interrupt `json:"person,omitempty"`
}

// titleRunes is how long a title becomes.
const titleRunes = 60

// titleOf is the first text that a user says, on one line.
func titleOf(messages []chat.Message) string {
	for _, m := range messages {
		if m.Role != chat.User {
			continue
		}
		line := strings.Join(strings.Fields(strings.ToValidUTF8(m.Content.String(), "")), " ")
		if line == "" {
			continue
		}
		if utf8.RuneCountInString(line) > titleRunes {
			line = string([]rune(line)[:titleRunes])
		}
		return line
	}
	return ""
}

// Trigger is what began a run.
type Trigger string

// The triggers.
const (
	ByClient       Trigger = "client"       // somebody's input
	ByContinuation Trigger = "continuation" // an answer that a run before waited for
	ByEvent        Trigger = "event"        // something that happened elsewhere
	ByMessage      Trigger = "message"      // from another conversation
)

// Status is how far a run has come.
type Status string

// The states of a run. The last four are its end.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Finished  Status = "finished"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	// Asking: it ended with questions to a person.
	Asking Status = "asking"
)

// Ended reports whether nothing more comes of the run.
func (s Status) Ended() bool { return s != Queued && s != Running }

// A Record is what is kept of a run besides its events.
type Record struct {
	ID      string
	Parent  string // the run that asked for it
	Trigger Trigger
	Agent   string
	Status  Status
	// Digest is that of its input.
	Digest string
	// Code and Message say why it failed.
	Code, Message string
	Usage         []chat.Usage
	// First and Last are the numbers of its first and its last event; 0 if it has none.
	First, Last int64
	// Started is zero if it never began, Ended if it has not ended.
	Created, Started, Ended time.Time
}

// addUsage adds what a turn of a model cost to what others did.
func addUsage(all []chat.Usage, u chat.Usage) []chat.Usage {
	i := slices.IndexFunc(all, func(t chat.Usage) bool { return t.Provider == u.Provider && t.Model == u.Model })
	if i < 0 {
		i, all = len(all), append(all, chat.Usage{Provider: u.Provider, Model: u.Model})
	}
	t := &all[i]
	for _, n := range []struct {
		to   *int64
		more int64
	}{
		{&t.InputTokens, u.InputTokens}, {&t.OutputTokens, u.OutputTokens}, {&t.TotalTokens, u.TotalTokens},
		{&t.ReasoningTokens, u.ReasoningTokens}, {&t.CachedInputTokens, u.CachedInputTokens}, {&t.CacheWriteInputTokens, u.CacheWriteInputTokens},
	} {
		*n.to = min(*n.to+min(max(n.more, 0), mostTokens), mostTokens)
	}
	return all
}

// mostTokens is the largest number that an event can say (I-JSON, RFC 7493, 2.2): one with a
// larger one could not be kept, and the end of the run with it.
const mostTokens = 1<<53 - 1
