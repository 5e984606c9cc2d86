package capability

import (
	"errors"
	"net/netip"
)

// specialPrefixes are the addresses that are not public, after the registries of
// special-purpose addresses of IANA, with the ranges that carry IPv4 inside
// IPv6. Go's own predicates know a third of them.
var specialPrefixes = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23",
	"2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// special reports whether an address is not public.
func special(addr netip.Addr) bool {
	_, ok := specialRange(netip.PrefixFrom(addr, addr.BitLen()))
	return ok
}

// specialRange returns the special range that holds all of p.
func specialRange(p netip.Prefix) (netip.Prefix, bool) {
	for _, whole := range specialPrefixes {
		if whole.Bits() <= p.Bits() && whole.Contains(p.Addr()) {
			return whole, true
		}
	}
	return netip.Prefix{}, false
}

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
	if _, ok := specialRange(p); !ok {
		return p, errors.New("only ranges that are not public may stand here, and public addresses need no permission")
	}
	return p, nil
}

// loopback4 and loopback6 are where a local name leads.
var (
	loopback4 = netip.MustParsePrefix("127.0.0.0/8")
	loopback6 = netip.MustParsePrefix("::1/128")
)

// contained reports whether a host is an address in p.
func contained(host string, p netip.Prefix) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && p.Contains(addr)
}
