package fetch

import (
	"net"
	"net/netip"
	"slices"
)

// The table of addresses that are not public. It is our own because the standard
// library's predicates leave out half of it: IsPrivate knows neither shared address
// space nor the blocks that translate to IPv4. Of IPv6 nothing is public but
// 2000::/3, and of that not what is listed.
func notPublic() []netip.Prefix {
	return prefixes(
		"0.0.0.0/8",       // this network: 0.0.0.0 is loopback to many systems
		"10.0.0.0/8",      // private
		"100.64.0.0/10",   // shared address space of carriers
		"127.0.0.0/8",     // loopback
		"168.63.129.16",   // a cloud's host agent at an address that looks public
		"169.254.0.0/16",  // link-local; metadata services of clouds
		"172.16.0.0/12",   // private
		"192.0.0.0/24",    // protocol assignments
		"192.0.2.0/24",    // documentation
		"192.88.99.0/24",  // 6to4 relays
		"192.168.0.0/16",  // private
		"198.18.0.0/15",   // benchmarks
		"198.51.100.0/24", // documentation
		"203.0.113.0/24",  // documentation
		"224.0.0.0/4",     // multicast
		"240.0.0.0/4",     // reserved, and broadcast
		"2001::/23",       // protocol assignments: Teredo, ORCHID, benchmarks
		"2001:db8::/32",   // documentation
		"2002::/16",       // 6to4: any IPv4 address inside
		"3ffe::/16",       // the old test network
		"3fff::/20",       // documentation
	)
}

// single are addresses that no wider prefix of a rule allows: those at which clouds
// give out credentials.
func single() []netip.Prefix {
	return prefixes("169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16",
		"192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254")
}

// never are addresses that no rule allows: they lead to nobody, to everybody, or
// to this machine by another name.
func never() []netip.Prefix {
	return prefixes("0.0.0.0/8", "224.0.0.0/4", "255.255.255.255", "::", "ff00::/8")
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		if addr, err := netip.ParseAddr(text); err == nil {
			out[i] = netip.PrefixFrom(addr, addr.BitLen())
		} else {
			out[i] = netip.MustParsePrefix(text)
		}
	}
	return out
}

// addressTable decides which addresses may be dialled.
type addressTable struct {
	global, nat64            netip.Prefix
	notPublic, single, never []netip.Prefix
}

func newAddressTable() addressTable {
	return addressTable{netip.MustParsePrefix("2000::/3"), netip.MustParsePrefix("64:ff9b::/96"), notPublic(), single(), never()}
}

// permits reports whether a is public, or not public and inside one of allowed. An
// IPv4 address is not given as mapped into IPv6, where nothing is public; one that a
// network translates must be permitted itself. No prefix has an address with a zone
// in it. own are the addresses of this machine.
func (t addressTable) permits(a netip.Addr, allowed []netip.Prefix, own []netip.Addr) bool {
	if !a.IsValid() || within(a, t.never) {
		return false
	}
	if within(a, t.single) {
		return slices.Contains(allowed, netip.PrefixFrom(a, a.BitLen()))
	}
	if t.nat64.Contains(a) {
		b := a.As16()
		return within(a, allowed) && t.permits(netip.AddrFrom4([4]byte(b[12:])), allowed, own)
	}
	return t.public(a) && !slices.Contains(own, a) || within(a, allowed)
}

func (t addressTable) public(a netip.Addr) bool {
	if a.Is6() && (!t.global.Contains(a) || isISATAP(a)) {
		return false
	}
	return !within(a, t.notPublic)
}

// isISATAP reports whether the lower half of a is the interface identifier under
// which IPv4 addresses hide in any IPv6 network.
func isISATAP(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^0x03 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

func within(a netip.Addr, list []netip.Prefix) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// interfaceAddrs returns the addresses of this machine's network interfaces.
func interfaceAddrs() ([]netip.Addr, error) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				own = append(own, addr.Unmap())
			}
		}
	}
	return own, nil
}
