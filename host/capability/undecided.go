package capability

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
)

// undecided refuses a request that a person could allow. Who reads it is mostly a
// model: it is told to pass on the command that allows this and no other host.
func (e Effective) undecided(t target, why string) *Refusal {
	about, ok := t.flag()
	if !ok {
		return &Refusal{Code: abi.Denied, Text: why + "; no grant can name this method"}
	}
	return e.decidable(why, command("grant", e.module)+" --http "+about)
}

// decidable refuses what a command of a person allows.
func (e Effective) decidable(why, do string) *Refusal {
	return &Refusal{Code: abi.Denied, Do: do + e.flags,
		Text: why + "; only a person can allow it, so tell them to run this in a terminal: " + do}
}

// flag says what t is about as the value of --http, without its path: methods that
// a rule has anyway, and the scheme and port that it has by default, are left out.
// No rule can name a method that is not a known one.
func (t target) flag() (text string, ok bool) {
	var b strings.Builder
	if !slices.Contains(HTTPRule{}.methods(), t.method) {
		b.WriteString(t.method + ":")
	}
	if t.scheme != schemeHTTPS {
		b.WriteString(t.scheme + "://")
	}
	_, at, _ := strings.Cut(t.where(), "://")
	b.WriteString(at)
	text = b.String()
	if addr, err := netip.ParseAddr(t.host); err == nil && addr.Is6() {
		text = "'" + text + "'" // shells expand brackets
	}
	return text, slices.Contains(knownMethods(), t.method)
}
