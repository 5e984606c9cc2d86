package access

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// metadataPath is where a client finds out how it gets in (RFC 9728, 3); behind it stands
// the path of what it wants to reach.
const metadataPath = "/.well-known/oauth-protected-resource"

// MetadataPaths are the routes of [Door.Metadata]. They are public.
func (d *Door) MetadataPaths() []string {
	all := []string{metadataPath}
	for _, path := range d.o.Resources {
		all = append(all, metadataPath+path)
	}
	return all
}

// metadata describes one resource (RFC 9728, 2). It names no authorization server, because
// an operator gives tokens out.
type metadata struct {
	Resource string   `json:"resource"`
	Name     string   `json:"resource_name"`
	Methods  []string `json:"bearer_methods_supported"`
	Scopes   []string `json:"scopes_supported"`
}

// Metadata answers at [Door.MetadataPaths]. There is none while no token is needed: clients
// would take it that one is.
func (d *Door) Metadata(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, metadataPath)
	if !d.Closed() || !ok || path != "" && !slices.Contains(d.o.Resources, path) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(metadata{d.base(r) + path, "hutch", []string{"header"}, Scopes()}) // the client may be gone
}

// metadataOf is the address of the metadata of what a request wants to reach.
func (d *Door) metadataOf(r *http.Request) string {
	if slices.Contains(d.o.Resources, r.URL.Path) {
		return d.base(r) + metadataPath + r.URL.Path
	}
	return d.base(r) + metadataPath
}
