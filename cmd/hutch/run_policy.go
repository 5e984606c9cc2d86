package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/host/capability"
)

// sayable returns what of a grant a policy file may say: it was put together from
// what a stranger's module asked for. Why says for each rule that is left out what is
// wrong with it.
func sayable(g capability.Grant) (said capability.Grant, why []string) {
	if checkGrant(g) == nil {
		return g, nil
	}
	said = g
	said.HTTP, said.Secrets = nil, nil
	for _, r := range g.HTTP {
		rule, err := reachableRule(r)
		next := append(slices.Clone(said.HTTP), rule)
		if err == nil {
			err = checkGrant(capability.Grant{HTTP: next})
		}
		if err != nil {
			why = append(why, "host "+r.Host+": "+findingOf(err))
			continue
		}
		said.HTTP = next
	}
	for _, s := range g.Secrets {
		next := append(slices.Clone(said.Secrets), s)
		if err := checkGrant(capability.Grant{HTTP: said.HTTP, Secrets: next}); err != nil {
			why = append(why, "secret "+s.Name+": "+findingOf(err))
			continue
		}
		said.Secrets = next
	}
	return said, why
}

// findingOf is what is wrong with a rule, without where it stands.
func findingOf(err error) string {
	var bad *capability.PolicyError
	if !errors.As(err, &bad) || len(bad.Findings) == 0 {
		return err.Error()
	}
	return strings.TrimSuffix(bad.Findings[0].Found+": "+bad.Findings[0].Allowed, ": ")
}
