package gate

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/hutch-run/hutch/host/capability"
)

// maxRates is how many limiters are kept. Those that are full again say nothing
// and make room.
const maxRates = 4096

// rates hold modules to the rates of their rules: a rule of N in a time lets N
// through at once and N more while that time passes.
type rates struct {
	now  func() time.Time
	mu   sync.Mutex // guards kept
	kept map[rateKey]*limiter
}

// rateKey is one rule of one module, as it reads.
type rateKey struct{ module, rule string }

type limiter struct{ *rate.Limiter }

// full reports whether the limiter is as good as a new one.
func (l limiter) full(now time.Time) bool { return l.TokensAt(now) >= float64(l.Burst()) }

// take lets a request through, or says how long it has to wait.
func (r *rates) take(module string, rule capability.HTTPRule) (wait time.Duration, ok bool) {
	if rule.Rate.N == 0 {
		return 0, true
	}
	now := r.now()
	reservation := r.of(rateKey{module, rule.String()}, rule.Rate, now).ReserveN(now, 1)
	wait = reservation.DelayFrom(now)
	if wait == 0 {
		return 0, true
	}
	reservation.CancelAt(now)
	return max(wait.Round(time.Second), time.Second), false
}

func (r *rates) of(key rateKey, allowed capability.Rate, now time.Time) *limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.kept[key]
	if l == nil {
		if len(r.kept) >= maxRates {
			maps.DeleteFunc(r.kept, func(_ rateKey, l *limiter) bool { return l.full(now) })
		}
		if len(r.kept) >= maxRates { // more rules at their limits than a policy has
			clear(r.kept)
		}
		l = &limiter{rate.NewLimiter(rate.Limit(float64(allowed.N)/allowed.Per.Seconds()), allowed.N)}
		r.kept[key] = l
	}
	return l
}
