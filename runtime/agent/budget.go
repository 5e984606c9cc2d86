package agent

import (
	"fmt"
	"math"

	"github.com/hutch-run/hutch/protocol/chat"
)

// spent is what the requests of a run cost.
type spent struct {
	tokens int64
	cost   float64
}

// add counts what a provider says. A number that it cannot mean counts for as much as it
// can, so that none sets back what is counted.
func (s *spent) add(u chat.Usage, p Price) {
	in, out := counted(u.InputTokens), counted(u.OutputTokens)
	s.tokens = counted(s.tokens + max(counted(u.TotalTokens), in+out))
	cached := min(counted(u.CachedInputTokens), in)
	const million = 1e6
	s.cost += (float64(in-cached)*p.Input + float64(cached)*p.CachedInput + float64(out)*p.Output) / million
}

// counted is a number of tokens of which three can be added.
func counted(n int64) int64 { return min(max(n, 0), math.MaxInt64/4) }

// bytesPerToken is what is assumed where a provider does not say what it used: a bound
// that is not held is worse than one that is held roughly.
const bytesPerToken = 4

func (s *spent) guess(r chat.Request, a *answer, p Price) {
	in := 0
	for _, m := range r.Messages {
		in += len(m.Content.String())
		for _, c := range m.ToolCalls {
			in += len(c.Function.Name) + len(c.Function.Arguments)
		}
	}
	for _, f := range r.Tools {
		in += len(f.Name) + len(f.Description) + len(f.Parameters)
	}
	s.add(chat.Usage{InputTokens: int64(in / bytesPerToken), OutputTokens: int64(a.bytes / bytesPerToken)}, p)
}

// answer bounds the next answer; 0 is no bound.
func (s *spent) answer(o Options) int {
	if o.MaxTokens == 0 {
		return o.MaxAnswer
	}
	left := int(min(max(o.MaxTokens-s.tokens, 1), math.MaxInt32))
	if o.MaxAnswer == 0 {
		return left
	}
	return min(left, o.MaxAnswer)
}

// affords returns why the run may not go on, for what it cost so far.
func (r *run) affords() error {
	o := r.a.o
	switch {
	case o.MaxTokens > 0 && r.spent.tokens >= o.MaxTokens:
		return failure(CodeTokenLimit, fmt.Sprintf("the run used %d tokens, at most %d: ask for less at a time", r.spent.tokens, o.MaxTokens))
	case o.MaxCost > 0 && r.spent.cost >= o.MaxCost:
		return failure(CodeCostLimit, fmt.Sprintf("the run cost %.4f, at most %.4f: ask for less at a time", r.spent.cost, o.MaxCost))
	}
	return nil
}
