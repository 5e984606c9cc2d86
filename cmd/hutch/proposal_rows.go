package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/abi"
)

// mostRights is how many rights a question shows of each: a screenful.
const mostRights = 20

// risks says how much each line of a grant is worth reading: 0 for what reads, more
// for what writes, reaches every host or addresses of one's own, or carries a secret.
func risks(g capability.Grant) map[string]int {
	by := map[string]int{}
	for _, r := range g.HTTP {
		risk := 0
		if r.Host == "*" || len(r.AllowPrivate) > 0 {
			risk++
		}
		if writes(r) {
			risk += 2
		}
		by[abi.OneLine(r.String(), 400)] = risk
	}
	for _, s := range g.Secrets {
		by[abi.OneLine(s.String(), 400)] = 4
	}
	return by
}

// writes reports whether a rule lets more through than what is read with.
func writes(r capability.HTTPRule) bool {
	return slices.ContainsFunc(r.Methods, func(m string) bool { return m != http.MethodGet && m != http.MethodHead })
}

// nearest orders rights so that what matters most is nearest to the question, which
// stands below, and sums up what is too much for a screen. A row is a line of one of
// the grants, behind a sign or before a reason.
func (pr *proposal) nearest(rows []string, grants ...capability.Grant) []string {
	rights, risk := map[string]int{}, map[string]int{}
	for _, g := range grants {
		maps.Copy(rights, risks(g))
	}
	for _, row := range rows {
		line := strings.TrimPrefix(row, "+ ")
		for right, n := range rights {
			if line == right || strings.HasPrefix(line, right+": ") {
				risk[row] = max(risk[row], n)
			}
		}
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b string) int { return cmp.Compare(risk[a], risk[b]) })
	if rest := len(rows) - mostRights; rest > 0 {
		more := fmt.Sprintf("%d that matter less, see: hutch tools diff %s", rest, shellWord(pr.module.Name))
		rows = append([]string{more}, rows[rest:]...)
	}
	return rows
}

// inShort counts what the module has afterwards, if that is more than a glance.
func (pr *proposal) inShort() string {
	g := pr.grant
	if pr.action == actionRevoke || len(g.HTTP)+len(g.Secrets) < 2 {
		return ""
	}
	hosts, written := map[string]bool{}, map[string]bool{}
	for _, r := range g.HTTP {
		hosts[r.Host] = true
		if writes(r) {
			written[r.Host] = true
		}
	}
	names := map[string]bool{}
	for _, s := range g.Secrets {
		names[s.Name] = true
	}
	return fmt.Sprintf("%s, %d that can be written to, %s", plural(len(hosts), "host", "hosts"), len(written), plural(len(names), "secret", "secrets"))
}
