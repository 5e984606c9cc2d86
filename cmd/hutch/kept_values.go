package main

import (
	"context"
	"net/http"
	"net/url"

	"github.com/hutch-run/hutch/runtime/store"
)

// keptPath is where an owner tells how many values a module keeps.
const keptPath = "/control/v1/values/kept"

// spacesOf begins the names of the spaces of a module, one for each of its callers.
func spacesOf(module string) string { return module + "/" }

// keptValues is how many values a module of this name has kept, for all its callers.
func (cfg Config) keptValues(ctx context.Context, module string) (int64, error) {
	return lookAt(ctx, cfg, keptPath+"?module="+url.QueryEscape(module), func(db *store.DB) (int64, error) {
		return db.KVCount(ctx, spacesOf(module))
	})
}

// tellKept answers at keptPath.
func (a *App) tellKept(w http.ResponseWriter, r *http.Request) {
	n, err := a.db.KVCount(r.Context(), spacesOf(r.URL.Query().Get("module")))
	tell(w, n, err)
}

// forgets reports whether the values that are kept under the module's name go. They
// stay as long as the module may keep some, from one accepted version to the next:
// once that ends, or before it begins, they are another module's.
func (pr *proposal) forgets() bool {
	return pr.action != actionApprove && (pr.entry.Grant.KV == nil) != (pr.grant.KV == nil)
}

// values says what becomes of the values that are kept under the module's name.
func (pr *proposal) values() (key, what string) {
	n := plural(int(pr.kept), "value", "values")
	switch {
	case pr.kept == 0:
		return "", ""
	case pr.forgets() && pr.grant.KV == nil:
		return "drops", n + " that it keeps, for good"
	case pr.forgets():
		return "drops", n + " that an earlier module of this name kept, for good"
	case pr.changed() && pr.grant.KV != nil:
		return "keeps", n + " of the version before"
	}
	return "", ""
}

// editIn is edit with what becomes of the values that are kept.
func (d decision) editIn(ctx context.Context, db *store.DB) policyEdit {
	return func(file string, text []byte) ([]byte, error) {
		next, err := d.edit(file, text)
		if err == nil && d.Forget && db != nil {
			err = db.KVForget(ctx, spacesOf(d.Module))
		}
		return next, err
	}
}
