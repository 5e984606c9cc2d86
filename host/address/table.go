package address

import "net/netip"

// The ranges are those of the registries of special-purpose addresses of IANA and
// of what clouds put behind link-local and other addresses. They are our own since
// the predicates of the standard library leave half of them out: IsPrivate knows
// neither shared address space nor what is translated to IPv4. Nothing here is ever
// changed.

// special is what is not public though it may look so.
var special = ranges(
	"0.0.0.0/8",       // this network: 0.0.0.0 is loopback to many systems
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // shared address space of carriers
	"127.0.0.0/8",     // loopback
	"168.63.129.16",   // a cloud's host agent at an address that looks public
	"169.254.0.0/16",  // link-local; metadata services of clouds
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.31.196.0/24", // AS112: whoever is nearest answers
	"192.52.193.0/24", // multicast relays: likewise
	"192.88.99.0/24",  // 6to4 relays: likewise
	"192.168.0.0/16",  // private
	"192.175.48.0/24", // AS112
	"198.18.0.0/15",   // benchmarking
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, and broadcast

	"::/96",             // unspecified, loopback, and IPv4 by an old notation
	"::ffff:0:0/96",     // IPv4 mapped
	"::ffff:0:0:0/96",   // IPv4 translated
	"64:ff9b::/96",      // NAT64: any IPv4 address inside
	"64:ff9b:1::/48",    // NAT64 of a local network
	"100::/64",          // discard
	"100:0:0:1::/64",    // dummy
	"2001::/23",         // protocol assignments: Teredo, ORCHID, benchmarking
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4: any IPv4 address inside
	"2620:4f:8000::/48", // AS112
	"3ffe::/16",         // the old test network
	"3fff::/20",         // documentation
	"5f00::/16",         // segment routing
	"fc00::/7",          // unique local
	"fe80::/10",         // link-local
	"fec0::/10",         // site-local
	"ff00::/8",          // multicast
)

// allocated is what of IPv6 can be public; unallocated is all the rest of it.
var (
	allocated   = ranges("2000::/3")
	unallocated = ranges("::/3", "4000::/2", "8000::/1")
)

// credentials are addresses at which clouds give out credentials: no wider prefix
// of a rule permits them.
var credentials = ranges(
	"169.254.169.254",                 // most clouds
	"169.254.170.2", "169.254.170.23", // containers
	"169.254.0.23", "169.254.42.42", // some clouds
	"100.100.100.200", "168.63.129.16", "192.0.0.192", // others
	"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fe80::a9fe:a9fe",
)

// never is what no rule allows.
var never = ranges("0.0.0.0/8", "224.0.0.0/4", "255.255.255.255", "::", "::ffff:0:0/96", "ff00::/8")

// The ranges that carry an IPv4 address: where it stands is said by carried.
var (
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
	lastFour   = ranges("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")
)

// ranges reads addresses and prefixes. A mistake in one shows at once: the program
// does not start.
func ranges(texts ...string) []netip.Prefix {
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
