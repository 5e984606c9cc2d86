package main

import (
	"context"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/runtime/store"
)

// certificateSoon is how long before its end a certificate is told of.
const certificateSoon = 14 * 24 * time.Hour

// checkTokens looks at who may come in at the address.
func checkTokens(ctx context.Context, who patient) []finding {
	all, err := lookAt(ctx, who.cfg, tokensPath, func(db *store.DB) ([]access.Token, error) { return db.Tokens(ctx) })
	exposed, create := who.cfg.exposed(), "hutch tokens create NAME"+who.cfg.stateFlag()
	switch {
	case err != nil:
		return []finding{{"tokens", verdictWarn, err.Error(), hintOf(err)}}
	case len(all) == 0 && exposed != "":
		return []finding{{"tokens", verdictFail, "none, so hutch does not serve with " + exposed + " " + who.cfg.reachedBy(exposed) + ", where others reach it", create}}
	case len(all) == 0:
		return []finding{{"tokens", verdictOK, "none: whoever is on this machine may call what hutch serves", ""}}
	}
	expired := 0
	for _, t := range all {
		if listed(t).Expired {
			expired++
		}
	}
	found := plural(len(all), "token", "tokens")
	if expired == len(all) {
		return []finding{{"tokens", verdictWarn, found + ", all expired: nobody is let in", create}}
	}
	if expired > 0 {
		found += ", " + plural(expired, "of them expired", "of them expired")
	}
	return []finding{{"tokens", verdictOK, found, ""}}
}

// checkCertificate looks at what serve proves with who it is.
func checkCertificate(_ context.Context, who patient) []finding {
	if who.cfg.TLS.Cert == "" {
		return nil
	}
	pair, err := who.cfg.TLS.read()
	if err != nil {
		return []finding{verdictOf("certificate", err, "")}
	}
	f := finding{"certificate", verdictOK, "good until " + pair.Leaf.NotAfter.Local().Format(time.DateTime), ""}
	if now := time.Now(); now.Before(pair.Leaf.NotBefore) || now.Add(certificateSoon).After(pair.Leaf.NotAfter) {
		f.Status, f.Do = verdictWarn, "put a newer one in its place; a hutch that runs takes it at once"
		f.Found = "good from " + pair.Leaf.NotBefore.Local().Format(time.DateTime) + " to " + pair.Leaf.NotAfter.Local().Format(time.DateTime)
	}
	return []finding{f}
}
