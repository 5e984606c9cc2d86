package capability

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Lines says what g gives, one right a line, in the order of a policy. Every
// line is short and safe to show.
func (g Grant) Lines() (lines []string) {
	for _, r := range g.HTTP {
		lines = append(lines, r.String())
	}
	for _, s := range g.Secrets {
		lines = append(lines, s.String())
	}
	if g.KV != nil {
		lines = append(lines, g.KV.String())
	}
	for _, kind := range listKinds() {
		for _, name := range *g.names(kind) {
			lines = append(lines, kind+" "+orAny(name))
		}
	}
	for _, f := range g.FS {
		lines = append(lines, strings.TrimSpace("fs "+orAny(f.Path)+" "+f.Mode))
	}
	for i := range lines {
		lines[i] = abi.OneLine(lines[i], 400)
	}
	return lines
}

// orAny says that a request leaves open what it is about.
func orAny(what string) string {
	if what == "" || what == anyHost {
		return "(whatever is granted)"
	}
	return what
}

// String says what a rule lets through.
func (r HTTPRule) String() string {
	if r.open() {
		return strings.TrimSuffix("http "+strings.Join(r.Methods, ", "), " ") + " (whatever is granted)" + r.bounds()
	}
	host := r.Host
	switch {
	case host == anyHost:
		host = "any public host"
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	text := "http " + strings.Join(r.methods(), ", ") + " " + r.scheme() + "://" + host
	if len(r.Ports) > 0 {
		text += " port " + joinPorts(r.Ports)
	}
	if len(r.Paths) > 0 {
		text += " below " + strings.Join(r.Paths, ", ")
	}
	return text + r.bounds()
}

// bounds says what else goes for what a rule lets through.
func (r HTTPRule) bounds() (text string) {
	if r.MaxRequest > 0 {
		text += ", at most " + formatSize(r.MaxRequest) + " sent"
	}
	if r.MaxResponse > 0 {
		text += ", at most " + formatSize(r.MaxResponse) + " back"
	}
	if r.Rate.N > 0 {
		text += ", " + r.Rate.String()
	}
	if len(r.AllowPrivate) > 0 {
		text += ", private addresses " + joinPrefixes(r.AllowPrivate)
	}
	switch r.Approval {
	case Ask:
		text += ", refused until allowed"
	case Deny:
		text += ", denied"
	}
	return text
}

func joinPorts(ports []int) string {
	var texts []string
	for _, p := range ports {
		texts = append(texts, strconv.Itoa(p))
	}
	return strings.Join(texts, ", ")
}

func joinPrefixes(prefixes []netip.Prefix) string {
	var texts []string
	for _, p := range prefixes {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ", ")
}

// String says where a secret goes.
func (s SecretRule) String() string {
	if s.Name == "" {
		return "secrets (whatever is granted)"
	}
	place := "header " + s.Header
	if s.Query != "" {
		place = "query " + s.Query
	}
	text := fmt.Sprintf("secret %s as %s to %s", s.Name, place, s.Host)
	if len(s.Paths) > 0 {
		text += " below " + strings.Join(s.Paths, ", ")
	}
	return text
}

// String says how much may be kept for how long.
func (r KVRule) String() string {
	text := "kv"
	if r.Max > 0 {
		text += ", at most " + formatSize(r.Max)
	}
	if r.TTL > 0 {
		text += ", kept for " + formatDuration(r.TTL)
	}
	return text
}

// DiffGrants returns what is only in old with - before it, and what is only in
// now with +, each one right a line; nil if they give the same.
func DiffGrants(old, now Grant) (rows []string) {
	before, after := old.Lines(), now.Lines()
	for _, line := range before {
		if !slices.Contains(after, line) {
			rows = append(rows, "- "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			rows = append(rows, "+ "+line)
		}
	}
	return rows
}

// Widening returns what now gives, or asks for, beyond old: each right that no
// single one of old covers. It errs on the side of telling.
func Widening(old, now Grant) (wider []string) {
	add := func(covered bool, line string) {
		if !covered {
			wider = append(wider, abi.OneLine(line, 400))
		}
	}
	for _, r := range now.HTTP {
		add(slices.ContainsFunc(old.HTTP, func(o HTTPRule) bool { return o.covers(r) }), r.String())
	}
	for _, s := range now.Secrets {
		add(slices.ContainsFunc(old.Secrets, func(o SecretRule) bool { return o.covers(s) }), s.String())
	}
	if now.KV != nil {
		add(old.KV != nil && old.KV.covers(*now.KV), now.KV.String())
	}
	for _, kind := range listKinds() {
		for _, name := range *now.names(kind) {
			add(slices.ContainsFunc(*old.names(kind), func(o string) bool { return nameCovers(kind, o, name) }), kind+" "+orAny(name))
		}
	}
	for _, f := range now.FS {
		add(slices.ContainsFunc(old.FS, func(o FSRule) bool { return o.covers(f) }), strings.TrimSpace("fs "+orAny(f.Path)+" "+f.Mode))
	}
	return wider
}

func (s SecretRule) covers(other SecretRule) bool {
	if s.Name == "" || other.Name == "" {
		return s.Name == ""
	}
	return s.Name == other.Name && strings.EqualFold(s.Header, other.Header) && s.Query == other.Query &&
		hostCovers(s.Host, other.Host) && pathsCover(s.Paths, other.Paths)
}

// covers compares what is written: a zero field leaves a default, which is
// neither more nor less than a number.
func (r KVRule) covers(other KVRule) bool {
	return atLeast(r.Max, other.Max) && atLeast(int64(r.TTL), int64(other.TTL))
}

func (f FSRule) covers(other FSRule) bool {
	if f.Path == "" || other.Path == "" {
		return f.Path == ""
	}
	return below(f.Path, other.Path) && (f.Mode == "rw" || other.Mode == "ro")
}
