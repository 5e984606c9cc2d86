package capability

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/hutch-run/hutch/host/address"
)

// maxHostBytes is how long a host may be as it is written: encoding a long one in
// other scripts takes quadratic time.
const maxHostBytes = 512

// anyHost is the rule for every public address.
const anyHost = "*"

// profile maps a name as a browser does before it looks it up. Letters of hosts
// are checked by hostLabel, since underscores and --- do occur.
var profile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(),
	idna.StrictDomainName(false), idna.CheckHyphens(false), idna.VerifyDNSLength(true))

// CanonicalHost returns the one spelling of a host: an IP address as netip
// writes it, without brackets, or a name in ASCII, in lower case, without the
// dot at its end. What could mean an address without being written as one is
// refused: numbers of another base or with parts left out (a resolver might
// answer), IPv4 inside IPv6, zones.
func CanonicalHost(s string) (string, error) {
	if len(s) > maxHostBytes {
		return "", fmt.Errorf("%d bytes: a name has at most 253 characters, and %d bytes where it is not ASCII", len(s), maxHostBytes)
	}
	if !utf8.ValidString(s) { // behind an encoding
		return "", errors.New("a name is UTF-8")
	}
	bare, bracketed := strings.CutPrefix(s, "[")
	if bracketed {
		if bare, bracketed = strings.CutSuffix(bare, "]"); !bracketed {
			return "", errors.New("a bracket is missing")
		}
	}
	if bracketed || strings.Contains(bare, ":") {
		return canonicalIPv6(bare)
	}
	name, err := canonicalName(bare)
	if err != nil || !numeric(name) {
		return name, err
	}
	// Only plain digits and dots may be an address: what IDNA maps to digits
	// was not written as one.
	addr, err := netip.ParseAddr(bare)
	if err != nil || !addr.Is4() {
		return "", errors.New("an IPv4 address is four numbers from 0 to 255 without leading zeros, and no name ends in a number")
	}
	return addr.String(), nil
}

func canonicalIPv6(bare string) (string, error) {
	addr, err := netip.ParseAddr(bare)
	switch {
	case err != nil || !addr.Is6():
		return "", errors.New("a host is a name, an IPv4 address or an IPv6 address, without scheme, port and path")
	case addr.Zone() != "":
		return "", errors.New("an address has no zone here")
	case addr.Is4In6():
		return "", errors.New("write an IPv4 address as four numbers")
	}
	return addr.String(), nil
}

func canonicalName(s string) (string, error) {
	if s == "" {
		return "", errors.New("a host is wanted here")
	}
	name, err := strings.TrimSuffix(s, "."), error(nil)
	if !plainName(name) {
		if name, err = profile.ToASCII(name); err != nil {
			return "", errors.New("no name that can be looked up")
		}
	}
	name = strings.ToLower(name)
	if len(name) > 253 {
		return "", errors.New("a name has at most 253 characters")
	}
	for label := range strings.SplitSeq(name, ".") {
		if !hostLabel(label) {
			return "", errors.New("a name has letters, digits, - and _ between its dots, without scheme, port and path")
		}
	}
	return name, nil
}

// plainName reports whether IDNA has nothing to say about s: it is ASCII, and
// no label claims to be encoded.
func plainName(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return !strings.Contains(strings.ToLower(s), "xn--")
}

func hostLabel(label string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_"
	return label != "" && len(label) <= 63 && strings.Trim(label, allowed) == "" &&
		label[0] != '-' && label[len(label)-1] != '-'
}

// numeric reports whether the last label reads as a number somewhere: then the
// whole is an address to some resolvers (WHATWG URL, "ends in a number").
func numeric(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// parseHost reads the host of an HTTP rule.
func parseHost(text string) (string, error) {
	if text == anyHost {
		return anyHost, nil
	}
	rest, wild := strings.CutPrefix(text, "*.")
	if strings.Contains(rest, "*") {
		return "", errors.New(`allowed are a host, "*." before one, or "*"`)
	}
	host, err := CanonicalHost(rest)
	if err != nil || !wild {
		return host, err
	}
	if isAddress(host) {
		return "", errors.New("an address has no labels that * could stand for")
	}
	return "*." + host, nil
}

// parseSecretHost reads the host that a secret is sent to: never just any.
func parseSecretHost(text string) (string, error) {
	if text == anyHost {
		return "", errors.New("a secret goes to one host, or to one label before it")
	}
	return parseHost(text)
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// hostMatches reports whether pattern is about a canonical host.
func hostMatches(pattern, host string) bool {
	switch suffix, wild := strings.CutPrefix(pattern, "*"); {
	case pattern == anyHost:
		return publicLooking(host)
	case wild:
		label, ok := strings.CutSuffix(host, suffix)
		return ok && !strings.Contains(label, ".") // nothing canonical begins with a dot
	}
	return pattern == host
}

// hostCovers reports whether every host that other is about is one that
// pattern is about.
func hostCovers(pattern, other string) bool {
	if pattern == anyHost {
		return other == anyHost || strings.HasPrefix(other, "*.") || publicLooking(other)
	}
	return pattern == other || !strings.HasPrefix(other, "*") && hostMatches(pattern, other)
}

// publicLooking reports whether nothing in the host itself says that it is not
// public. Where a name leads is checked when it is resolved.
func publicLooking(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return address.Public(addr)
	}
	return !localName(host)
}

// localName reports whether a name always means this machine (RFC 6761, 6.3).
func localName(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// hostRank orders patterns: what is more exact decides first.
func hostRank(pattern string) int {
	switch {
	case pattern == anyHost:
		return 2
	case strings.HasPrefix(pattern, "*"):
		return 1
	}
	return 0
}
