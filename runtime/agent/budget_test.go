package agent_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/agent"
)

// costing is a round that has a price.
func costing(u chat.Usage, pieces ...chat.Delta) says {
	pieces[len(pieces)-1].Usage = &u
	return deltas(pieces...)
}

// E3-23: a run that has used up what it may ends before it calls anything else.
func TestE3_23_RunsAreBoundedInWhatTheyCost(t *testing.T) {
	usage := chat.Usage{InputTokens: 900, OutputTokens: 100, CachedInputTokens: 400}
	round := func(i int) says { return costing(usage, callDeltas(fmt.Sprintf(`c put {"n":%d}`, i))...) }
	for _, tt := range []struct {
		name  string
		o     agent.Options
		calls int
		want  string
	}{
		{"tokens", agent.Options{MaxTokens: 2500}, 2, "ERROR token_limit: the run used 3000 tokens, at most 2500: ask for less at a time"},
		{"tokens to the last", agent.Options{MaxTokens: 3000}, 2, "ERROR token_limit: the run used 3000 tokens, at most 3000: ask for less at a time"},
		{"cost", agent.Options{MaxCost: 0.004, Price: agent.Price{Input: 2, CachedInput: 1, Output: 10}}, 1, "ERROR cost_limit: the run cost 0.0048, at most 0.0040: ask for less at a time"},
		{"neither", agent.Options{MaxTokens: 4001, MaxCost: 1, Price: agent.Price{Output: 1}}, 3, "END success"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, round(1), round(2), round(3), costing(usage, chat.Delta{Text: "ok"}, chat.Delta{Stop: chat.StopEnd}))
			tt.o.NewID = b.o.NewID
			b.o = tt.o
			out := b.turn("r", "hi", agent.Input{})
			if !strings.HasSuffix(out, tt.want) || len(b.tools.made) != tt.calls {
				t.Errorf("called %v and\n%s", b.tools.made, out)
			}
		})
	}
}

// A provider that says that more was cached than there was gives nothing back.
func TestNothingCostsLessThanNothing(t *testing.T) {
	b := newBench(t, costing(chat.Usage{InputTokens: 100, CachedInputTokens: 400, OutputTokens: 100}, callDeltas(`c put {}`)...))
	b.o.MaxCost, b.o.Price = 0.0001, agent.Price{Input: 2, Output: 2}
	if out := b.turn("r", "hi", agent.Input{}); !strings.HasSuffix(out, "ERROR cost_limit: the run cost 0.0002, at most 0.0001: ask for less at a time") {
		t.Error(out)
	}
}

// An answer that is there is given, whatever it cost; the next one is bounded by what is
// left.
func TestAnswersAreBoundedByWhatIsLeft(t *testing.T) {
	b := newBench(t, costing(chat.Usage{TotalTokens: 60}, callDeltas(`c put {}`)...), costing(chat.Usage{TotalTokens: 600}, chat.Delta{Text: "ok"}, chat.Delta{Stop: chat.StopEnd}))
	b.o.MaxTokens, b.o.MaxAnswer = 100, 70
	if out := b.turn("r", "hi", agent.Input{}); !strings.HasSuffix(out, "END success") {
		t.Error(out)
	}
	if one, two := b.model.asked[0].MaxTokens, b.model.asked[1].MaxTokens; one != 70 || two != 40 {
		t.Errorf("at most %d and %d tokens", one, two)
	}
}

// A provider that does not say what it used is bounded all the same.
func TestUnknownUsageIsGuessed(t *testing.T) {
	b := newBench(t, calls(`c put {"text":"`+strings.Repeat("x", 4000)+`"}`), calls("c put {}"))
	b.o.MaxTokens = 1000
	out := b.turn("r", "hi", agent.Input{})
	if !strings.Contains(out, "ERROR token_limit: the run used 10") || len(b.tools.made) != 0 {
		t.Errorf("called %v and\n%s", b.tools.made, out)
	}
}

// Nothing that a provider says it used sets back what was counted; what is no number of
// tokens is as good as none, and guessed.
func TestUsageIsNotBelieved(t *testing.T) {
	const most = math.MaxInt64
	for name, tt := range map[string]struct {
		usage chat.Usage
		calls int
	}{
		"more than can be added": {chat.Usage{InputTokens: most, OutputTokens: most}, 1},
		"a total":                {chat.Usage{TotalTokens: most}, 1},
		"less than nothing":      {chat.Usage{InputTokens: -most, OutputTokens: -most, TotalTokens: -most, CachedInputTokens: -most}, 2},
		"nothing":                {chat.Usage{Provider: "p", Model: "m"}, 2},
		"some of it nonsense":    {chat.Usage{InputTokens: -most, TotalTokens: 1500}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, costing(chat.Usage{TotalTokens: 1500}, callDeltas(`c put {}`)...))
			for i := range 3 {
				b.model.rounds = append(b.model.rounds, costing(tt.usage, callDeltas(fmt.Sprintf(`c put {"n":%d,"text":"%s"}`, i, strings.Repeat("x", 2000)))...))
			}
			b.o.MaxTokens, b.o.MaxCost, b.o.Price = 3000, 1, agent.Price{Input: 1, CachedInput: 1, Output: 1}
			out := b.turn("r", "hi", agent.Input{})
			if !strings.Contains(out, "ERROR token_limit") || len(b.tools.made) != tt.calls {
				t.Errorf("called %d times and\n%s", len(b.tools.made), out)
			}
		})
	}
}
