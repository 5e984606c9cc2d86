// Package address knows which IP addresses are public, and what leads to this
// machine, to a network behind it, or to what gives credentials out.
//
// It is the only table of addresses there is: a policy's allow_private is checked
// against it when it is read, a host that is written as an address when a rule is
// matched, and what a name resolves to before it is dialled.
package address

import (
	"net/netip"
	"slices"
)

// Public reports whether an address is one of the public internet. An address with
// a zone never is, since no prefix has one in it, nor is an IPv4 address that is
// written or carried inside IPv6.
func Public(a netip.Addr) bool {
	if !a.IsValid() {
		return false
	}
	if a.Is6() && !within(a, allocated) {
		return false
	}
	return !within(a, special) && !isISATAP(a)
}

// Special returns a range that holds all of p and nothing that is public; ok is
// false if there is none.
func Special(p netip.Prefix) (whole netip.Prefix, ok bool) {
	for _, list := range [][]netip.Prefix{special, unallocated} {
		for _, whole := range list {
			if whole.Bits() <= p.Bits() && whole.Contains(p.Addr()) {
				return whole, true
			}
		}
	}
	return netip.Prefix{}, false
}

// Never reports whether all of p leads to nobody, to everybody, or to this machine
// by another name, so that no rule can allow it.
func Never(p netip.Prefix) bool {
	return slices.ContainsFunc(never, func(whole netip.Prefix) bool {
		return whole.Bits() <= p.Bits() && whole.Contains(p.Addr())
	})
}

// Permits reports whether a may be dialled: it is public and none of own, the
// addresses of this machine, or it lies in one of allowed. Where clouds give
// credentials out, only the address itself among allowed permits it. An address
// that carries an IPv4 address is permitted if both are.
func Permits(a netip.Addr, allowed []netip.Prefix, own []netip.Addr) bool {
	switch {
	case !a.IsValid() || within(a, never):
		return false
	case within(a, credentials):
		return slices.Contains(allowed, netip.PrefixFrom(a, a.BitLen()))
	case Public(a) && !slices.Contains(own, a):
		return true
	}
	return within(a, allowed) && !slices.ContainsFunc(carried(a), func(inner netip.Addr) bool {
		return !Permits(inner, allowed, own)
	}) && !slices.ContainsFunc(perhapsCarried(a), func(inner netip.Addr) bool {
		return within(inner, credentials)
	})
}

// carried returns the IPv4 address that a network on the way delivers to instead.
func carried(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	switch {
	case sixToFour.Contains(a):
		return []netip.Addr{four(b, 2, 3, 4, 5)}
	case teredo.Contains(a): // the client's, every bit turned round
		return []netip.Addr{four([16]byte{12: ^b[12], 13: ^b[13], 14: ^b[14], 15: ^b[15]}, 12, 13, 14, 15)}
	case a == netip.IPv6Loopback():
		return nil
	case within(a, lastFour) || isISATAP(a):
		return []netip.Addr{four(b, 12, 13, 14, 15)}
	}
	return nil
}

// perhapsCarried returns the IPv4 addresses that a local translator may find in a:
// the range for these does not say how long their prefix is (RFC 6052, 2.2).
func perhapsCarried(a netip.Addr) []netip.Addr {
	if !localNAT64.Contains(a) {
		return nil
	}
	b := a.As16()
	return []netip.Addr{four(b, 6, 7, 9, 10), four(b, 7, 9, 10, 11), four(b, 9, 10, 11, 12), four(b, 12, 13, 14, 15)}
}

func four(b [16]byte, w, x, y, z int) netip.Addr {
	return netip.AddrFrom4([4]byte{b[w], b[x], b[y], b[z]})
}

// isISATAP reports whether the lower half of a is the interface identifier under
// which IPv4 addresses hide in any IPv6 network (RFC 5214, 6.1).
func isISATAP(a netip.Addr) bool {
	if !a.Is6() {
		return false
	}
	b := a.As16()
	return b[8]&^0x03 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
