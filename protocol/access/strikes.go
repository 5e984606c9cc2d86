package access

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// How many wrong tokens one address may bring within a time before it is told to wait, and
// how many addresses are told apart; what is over that counts as one. A token that is good
// is let in whatever came before it: clients may share an address, and nobody shall lock
// others out.
const (
	MaxFailures   = 20
	FailureWindow = time.Minute
	maxAddresses  = 1024
	// others stands for all addresses that are not told apart.
	others = "others"
	// siteBits are those of an IPv6 address that one customer has.
	siteBits = 64
)

// strikes count wrong tokens by where they came from.
type strikes struct {
	now func() time.Time

	mu    sync.Mutex
	since time.Time
	count map[string]int
}

// add counts one more, and returns how long its sender shall wait, 0 for not at all. first
// says that it was not told so before.
func (s *strikes) add(remote string) (wait time.Duration, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if age := now.Sub(s.since); age >= FailureWindow || age < 0 {
		s.since, s.count = now, map[string]int{}
	}
	from := sourceOf(remote)
	if _, known := s.count[from]; !known && len(s.count) >= maxAddresses {
		from = others
	}
	s.count[from]++
	if s.count[from] <= MaxFailures {
		return 0, false
	}
	return s.since.Add(FailureWindow).Sub(now), s.count[from] == MaxFailures+1
}

// sourceOf is whom an address stands for.
func sourceOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return others
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return others
	}
	if addr = addr.Unmap().WithZone(""); addr.Is6() {
		if p, err := addr.Prefix(siteBits); err == nil {
			return p.String()
		}
	}
	return addr.String()
}
