package capability

import (
	"errors"
	"net/netip"

	"github.com/hutch-run/hutch/host/address"
)

// parsePrivate reads one range of addresses that are allowed though they are not
// public. A single address is a range of its own.
func parsePrivate(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return p, errors.New("an address or a range is wanted here, such as 192.168.1.7/32")
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if p != p.Masked() {
		return p, errors.New("bits are set behind the slash's length: write " + p.Masked().String())
	}
	if p.Addr().Is4In6() {
		return p, errors.New("write IPv4 addresses as four numbers")
	}
	if address.Never(p) {
		return p, errors.New("no rule allows this: it leads to nobody, to everybody, or to this machine by another name")
	}
	if _, ok := address.Special(p); !ok {
		return p, errors.New("only ranges that are not public may stand here, and public addresses need no permission")
	}
	return p, nil
}

// leadsHere reports whether a local name may have an address in p.
func leadsHere(p netip.Prefix) bool {
	return p.Contains(netip.IPv6Loopback()) || p.Overlaps(netip.PrefixFrom(netip.AddrFrom4([4]byte{127}), 8))
}
