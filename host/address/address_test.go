package address

import (
	"net/netip"
	"testing"
)

// The blocks that the standard library's predicates miss, and those that they
// know: the first and the last address of each, and the public ones beside them.
func TestS04_EveryRangeEndsWhereItShould(t *testing.T) {
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.255.255",
		"168.63.129.16", "169.254.0.0", "169.254.169.254", "169.254.255.255", "172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.255",
		"192.0.2.0", "192.0.2.255", "192.31.196.0", "192.31.196.255", "192.52.193.0", "192.52.193.255", "192.88.99.0", "192.88.99.255",
		"192.168.0.0", "192.168.255.255", "192.175.48.0", "192.175.48.255", "198.18.0.0", "198.19.255.255", "198.51.100.0", "198.51.100.255",
		"203.0.113.0", "203.0.113.255", "224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.254", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::ffff:0:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b::ffff:ffff",
		"64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "100::1", "100::ffff:ffff:ffff:ffff", "100:0:0:1::1", "1fff:ffff::1", "2001::1",
		"2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff:ffff::1", "2001:db8::1",
		"2001:db8:ffff::1", "2002::1", "2002:7f00:1::", "2002:808:808::1", "2002:ffff:ffff::1", "2620:4f:8000::1", "2620:4f:8000:ffff::1",
		"3ffe::1", "3ffe:ffff::1", "3fff::1", "3fff:fff::1", "4000::1", "5f00::1", "8000::1", "fc00::1", "fd00:ec2::254", "fd00::1",
		"fdff:ffff::1", "fe00::1", "fe80::1", "febf::1", "fec0::1", "feff::1", "ff00::1", "ff02::1", "ffff::1",
		"2600::5efe:a00:1", "2600::200:5efe:7f00:1", "2a00:1450:4001::100:5efe:a00:1", "fe80::1%eth0", "2600::1%eth0",
	} {
		if a := netip.MustParseAddr(text); Public(a) || Permits(a, nil, nil) {
			t.Errorf("%s is taken for public", text)
		}
	}
	for _, text := range []string{
		"1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
		"168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0",
		"192.31.195.255", "192.31.197.0", "192.52.192.255", "192.52.194.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0",
		"192.175.47.255", "192.175.49.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0",
		"223.255.255.255", "2000::1", "2001:200::1", "2001:db7::1", "2001:db9::1", "2001:4860:4860::8888", "2003::1", "2606:4700:4700::1111",
		"2600::5eff:a00:1", "2620:4f:7fff::1", "2620:4f:8001::1", "3ffd::1", "3fff:1000::1",
	} {
		if a := netip.MustParseAddr(text); !Public(a) || !Permits(a, nil, nil) {
			t.Errorf("%s is not taken for public", text)
		}
	}
	if Public(netip.Addr{}) || Permits(netip.Addr{}, nil, nil) {
		t.Error("no address is taken for public")
	}
}

// The unspecified addresses reach loopback on many systems, and so does IPv4 that is
// written in IPv6, however much a rule allows.
func TestS05_UnspecifiedAndMapped(t *testing.T) {
	all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for _, text := range []string{"0.0.0.0", "::", "::ffff:0.0.0.0", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.8.8"} {
		if a := netip.MustParseAddr(text); Public(a) || Permits(a, all, nil) {
			t.Errorf("%s is permitted", text)
		}
	}
}

func TestS04_WhatARuleMayAllow(t *testing.T) {
	for _, tt := range []struct {
		addr, allowed string
		want          bool
	}{
		{"192.168.1.7", "192.168.1.7/32", true}, {"192.168.1.8", "192.168.1.7/32", false}, {"127.0.0.1", "127.0.0.0/8", true},
		{"fd00::1", "fd00::/8", true}, {"::1", "::1/128", true}, {"fe80::1", "fe80::/10", true}, {"8.8.8.8", "10.0.0.0/8", true},
		// Where credentials are given out, a wide prefix is no permission.
		{"169.254.169.254", "169.254.0.0/16", false}, {"169.254.169.254", "0.0.0.0/0", false}, {"169.254.169.254", "169.254.169.254/32", true},
		{"169.254.170.2", "169.254.0.0/16", false}, {"169.254.170.23", "169.254.0.0/16", false}, {"169.254.0.23", "169.254.0.0/16", false},
		{"169.254.42.42", "169.254.0.0/16", false}, {"100.100.100.200", "100.64.0.0/10", false}, {"192.0.0.192", "192.0.0.0/24", false},
		{"168.63.129.16", "0.0.0.0/0", false}, {"168.63.129.16", "168.63.129.16/32", true}, {"fd00:ec2::254", "fd00::/8", false},
		{"fd00:ec2::254", "fd00:ec2::254/128", true}, {"fd00:ec2::23", "fd00::/8", false}, {"fd20:ce::254", "fd00::/8", false},
		{"fd00:42::42", "fd00::/8", false}, {"fe80::a9fe:a9fe", "fe80::/10", false},
		// What leads nowhere or everywhere is never permitted.
		{"0.0.0.0", "0.0.0.0/0", false}, {"0.0.0.0", "0.0.0.0/32", false}, {"255.255.255.255", "255.255.255.255/32", false},
		{"224.0.0.1", "224.0.0.0/4", false}, {"::", "::/0", false}, {"ff02::1", "::/0", false}, {"::ffff:127.0.0.1", "::/0", false},
		{"fe80::1%eth0", "fe80::/10", false}, {"::1%lo", "::1/128", false},
		// What carries an IPv4 address leads to that.
		{"64:ff9b::8.8.8.8", "64:ff9b::/96", true}, {"64:ff9b::10.0.0.1", "64:ff9b::/96", false}, {"64:ff9b::127.0.0.1", "::/0", false},
		{"64:ff9b::169.254.169.254", "::/0", false}, {"64:ff9b:1::8.8.8.8", "64:ff9b:1::/48", true}, {"64:ff9b:1::10.0.0.1", "64:ff9b:1::/48", true},
		{"64:ff9b:1::169.254.169.254", "64:ff9b:1::/48", false}, {"64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1::/48", false},
		{"64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1::/48", false}, {"64:ff9b:1:0:a9:fea9:fe00:0", "64:ff9b:1::/48", false},
		{"2002:808:808::1", "2002::/16", true}, {"2002:a9fe:a9fe::1", "2002::/16", false}, {"2002:7f00:1::", "2002::/16", false},
		{"2001:0:4136:e378:8000:63bf:f7f7:f7f7", "2001::/32", true}, {"2001:0:4136:e378:8000:63bf:5601:5601", "2001::/32", false},
		{"::127.0.0.1", "::/96", false}, {"::8.8.8.8", "::/96", true}, {"::ffff:0:10.0.0.1", "::ffff:0:0:0/96", false},
		{"fd00::5efe:a9fe:a9fe", "fd00::/8", false}, {"fd00::5efe:808:808", "fd00::/8", true},
	} {
		if got := Permits(netip.MustParseAddr(tt.addr), []netip.Prefix{netip.MustParsePrefix(tt.allowed)}, nil); got != tt.want {
			t.Errorf("%s with allow_private [%s]: %t, want %t", tt.addr, tt.allowed, got, tt.want)
		}
	}
}

func TestS03_OwnAddressesArePrivate(t *testing.T) {
	a := netip.MustParseAddr("93.184.215.14")
	own := []netip.Addr{a}
	if Permits(a, nil, own) || !Permits(a.Next(), nil, own) || !Permits(a, []netip.Prefix{netip.PrefixFrom(a, 32)}, own) {
		t.Error("an address of this machine is not treated as one that is not public")
	}
	if Permits(netip.MustParseAddr("64:ff9b::5db8:d70e"), []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96")}, own) {
		t.Error("an address of this machine is reached through a translator")
	}
}

func TestRangesThatAPolicyMayName(t *testing.T) {
	for text, want := range map[string]bool{
		"10.1.0.0/16": true, "10.0.0.0/7": false, "8.8.8.8/32": false, "0.0.0.0/0": false, "::/0": false, "fd00::/8": true, "fc00::/6": true,
		"4000::/16": true, "2000::/3": false, "2000::/2": false, "64:ff9b::/96": true, "168.63.129.16/32": true, "168.63.129.0/24": false,
	} {
		if _, got := Special(netip.MustParsePrefix(text)); got != want {
			t.Errorf("%s: special %t, want %t", text, got, want)
		}
	}
	for text, want := range map[string]bool{"0.0.0.0/32": true, "0.0.0.0/0": false, "255.255.255.255/32": true, "240.0.0.0/4": false,
		"::/128": true, "::1/128": false, "ff02::/16": true, "10.0.0.0/8": false} {
		if got := Never(netip.MustParsePrefix(text)); got != want {
			t.Errorf("%s: never %t, want %t", text, got, want)
		}
	}
}

// FuzzAddress holds the table against the predicates of the standard library: it
// may refuse more than they do, and never less.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "8.8.8.8", "::1", "::ffff:10.0.0.1", "2600::1", "fe80::1", "64:ff9b::1"} {
		b, err := netip.MustParseAddr(seed).MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		whole, special := Special(netip.PrefixFrom(a, a.BitLen()))
		if Public(a) && special {
			t.Fatalf("%s is public and lies in %s", a, whole)
		}
		if !Permits(a, nil, nil) {
			return
		}
		u := a.Unmap()
		if !u.IsGlobalUnicast() || u.IsPrivate() || u.IsLoopback() || u.IsLinkLocalUnicast() || u.IsMulticast() || u.IsUnspecified() {
			t.Fatalf("%s is permitted", a)
		}
		if Permits(a, nil, []netip.Addr{u}) {
			t.Fatalf("%s is permitted though it is this machine's", a)
		}
	})
}
