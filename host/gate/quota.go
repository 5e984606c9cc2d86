package gate

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/abi"
)

// Counters add up what a subject used today (UTC). Count adds calls and bytes
// unless that would be more than maxCalls or maxBytes, which are no bound if they
// are 0, and returns what was used: with what was added, or, if ok is false,
// without.
type Counters interface {
	Count(ctx context.Context, subject string, calls, bytes, maxCalls, maxBytes int64) (usedCalls, usedBytes int64, ok bool, err error)
}

// unit is what a quota counts.
type unit int

const (
	calls unit = iota
	egress
	units
)

func (u unit) String() string { return [...]string{"calls", "bytes of requests and answers"}[u] }
func (u unit) key() string    { return [...]string{"calls_per_day", "egress_per_day"}[u] }

// blocks is in how many parts a day's quota is fetched from the counters, each of
// which is a write to the disk. What is left of one when the process ends counts
// as used.
const blocks = 64

// maxQuotas bounds how many modules' blocks are kept at once.
const maxQuotas = 4096

// quotas hold modules to what they may use in a day.
type quotas struct {
	store  Counters
	now    func() time.Time
	logger *slog.Logger

	mu   sync.Mutex // guards kept
	kept map[string]*allowance
}

// allowance is what one module has fetched from the counters and not used.
type allowance struct {
	mu   sync.Mutex
	day  int64
	left [units]int64
}

func (q *quotas) of(module string) *allowance {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.kept[module]
	if a == nil {
		if len(q.kept) >= maxQuotas { // what others had fetched counts as used
			clear(q.kept)
		}
		a = &allowance{}
		q.kept[module] = a
	}
	return a
}

// day numbers the days as the counters do.
func (q *quotas) day() int64 { return q.now().Unix() / (24 * 60 * 60) }

// take uses want of a module's quota, or less if that is all there is, and fails
// if it is less than least. It returns how much.
func (q *quotas) take(ctx context.Context, module string, u unit, least, want, most int64) (int64, *capability.Refusal) {
	if q.store == nil {
		return 0, &capability.Refusal{Code: abi.Unavailable, Text: fmt.Sprintf(
			"%s is limited (limits.%s), which the process that owns the state folder alone can count: call the tool through hutch serve or hutch mcp", module, u.key())}
	}
	a := q.of(module)
	a.mu.Lock()
	defer a.mu.Unlock()
	if day := q.day(); a.day != day {
		a.day, a.left = day, [units]int64{}
	}
	if missing := want - a.left[u]; missing > 0 {
		got, err := q.fetch(ctx, module, u, max(missing, most/blocks), missing, most)
		if err != nil {
			q.logger.ErrorContext(ctx, "a quota cannot be counted", "module", module, "error", err)
			return 0, &capability.Refusal{Code: abi.Unavailable, Text: module + ": what it used today cannot be counted now: try again later"}
		}
		a.left[u] += got
	}
	if a.left[u] < least {
		return 0, &capability.Refusal{Code: abi.Limit, Text: fmt.Sprintf(
			"%s has used up its %d %s for today (limits.%s): try again tomorrow", module, most, u, u.key())}
	}
	taken := min(want, a.left[u])
	a.left[u] -= taken
	return taken, nil
}

// fetch takes a block from the counters, or what is missing, or what there is.
func (q *quotas) fetch(ctx context.Context, module string, u unit, block, missing, most int64) (int64, error) {
	for _, n := range []int64{block, missing} {
		used, ok, err := q.count(ctx, module, u, n, most)
		if ok || err != nil {
			return n, err
		}
		if rest := most - used; rest < missing {
			return q.rest(ctx, module, u, rest, most)
		}
	}
	return 0, nil // others were quicker
}

func (q *quotas) rest(ctx context.Context, module string, u unit, rest, most int64) (int64, error) {
	if rest <= 0 {
		return 0, nil
	}
	_, ok, err := q.count(ctx, module, u, rest, most)
	if !ok {
		rest = 0
	}
	return rest, err
}

func (q *quotas) count(ctx context.Context, module string, u unit, n, most int64) (used int64, ok bool, err error) {
	var add, bound [units]int64
	add[u], bound[u] = n, most
	usedCalls, usedBytes, ok, err := q.store.Count(ctx, "module/"+module, add[calls], add[egress], bound[calls], bound[egress])
	return [...]int64{usedCalls, usedBytes}[u], ok, err
}

// give puts back what was taken and not used; a negative amount is what was used
// without having been taken.
func (q *quotas) give(module string, u unit, n int64) {
	a := q.of(module)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.day == q.day() {
		a.left[u] += n
	}
}

// lease is what one request may move.
type lease struct {
	quotas *quotas
	module string
	bytes  int64 // sent and received together
}

// lease sets bytes aside for a request of that size and the largest answer, or the
// largest that is left for.
func (s *call) lease(ctx context.Context, size int) (lease, *capability.Refusal) {
	const all = 1 << 40 // more than any request moves
	most := s.granted.Limits().EgressPerDay
	if most == 0 {
		return lease{bytes: all}, nil
	}
	least := int64(size) + headBytes + 1
	taken, refusal := s.gate.quotas.take(ctx, s.module.Name, egress, least, least+defaultBody, most)
	return lease{&s.gate.quotas, s.module.Name, taken}, refusal
}

// settle gives back what was not used.
func (l lease) settle(used int64) {
	if l.quotas != nil {
		l.quotas.give(l.module, egress, l.bytes-used)
	}
}
