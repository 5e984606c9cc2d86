package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/host/capability"
)

// checkPolicy says whether the policy file is right. A hutch that runs goes on with
// the one it had while it is not.
func checkPolicy(_ context.Context, who patient) []finding {
	f, err := openPolicy(who.cfg, slog.New(slog.DiscardHandler))
	if err == nil {
		found := fmt.Sprintf("%s: %s", who.cfg.Policy, plural(len(f.current().Modules()), "module", "modules"))
		if !f.seen.there {
			found = who.cfg.Policy + ": not there, so nothing is granted but what hutch comes with"
		}
		return []finding{{"policy", verdictOK, found, ""}}
	}
	var bad *capability.PolicyError
	if !errors.As(err, &bad) {
		return []finding{verdictOf("policy", err, "")}
	}
	var all []finding
	for _, line := range bad.Lines() {
		all = append(all, finding{"policy", verdictFail, line, hintOf(err)})
	}
	return all
}

// checkSecrets says whether secrets can be used, and how many there are.
func checkSecrets(ctx context.Context, who patient) (all []finding) {
	for _, m := range who.cfg.secretMistakes(who.p) {
		do := m.Do
		if do == "" && m.Where != "" {
			do = "correct " + shellWord(m.Where) + ", which only you may read: mode 0600"
		}
		all = append(all, finding{"secrets", verdictFail, m.String(), do})
	}
	vault, err := openVault(who.cfg, who.p, slog.New(slog.DiscardHandler))
	if len(all) > 0 || err != nil {
		return all
	}
	found := plural(len(vault.Names()), "secret", "secrets")
	if file := who.cfg.Secrets.File; !isThere(file) {
		found += "; " + file + " is not there"
	}
	k := keeper{cfg: who.cfg, vault: vault, say: &voice{w: io.Discard}}
	return append([]finding{{"secrets", verdictOK, found, ""}}, k.unset(ctx, who.p)...)
}

// unset warns of secrets that a module was granted and that nobody has set, as whoever
// owns the state folder sees it.
func (k keeper) unset(ctx context.Context, p program) (all []finding) {
	known, _, err := k.ownersSecrets(ctx)
	if err != nil {
		known = k.vault.Names()
	}
	users := k.users(p)
	for _, name := range slices.Sorted(maps.Keys(users)) {
		if _, set := keptIn(known, name); !set {
			all = append(all, finding{"secrets", verdictWarn, fmt.Sprintf("%s is not set, and %s may use it", name, strings.Join(users[name], ", ")), "hutch secrets set " + name})
		}
	}
	return all
}
