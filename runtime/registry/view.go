package registry

import (
	"slices"

	"github.com/hutch-run/hutch/protocol/tool"
)

// Module is one file as an operator sees it.
type Module struct {
	Name    string // bare file name
	Source  string // "shipped", or the folder as configured
	Shipped bool
	// Digest and Size are those of the file as it lies there now; a file that
	// could not be read has none.
	Digest string
	Size   int64
	// Serving is the digest whose tools are offered: Digest, or that of the
	// version before; empty if none are.
	Serving string
	Status  tool.Status
	// Reason says why the file, or its new version, cannot be used; empty if it can.
	Reason string
	// Waits says why the version before serves and not the file as it lies there;
	// empty if that is not so.
	Waits string

	// The rest describes what serves, and is empty if nothing does.

	// Code is its worker.CodeDigest.
	Code    string
	Dialect string
	Version string // the module's own
	// Definitions is the hash of what it says, as exported.
	Definitions string
	Requests    tool.Requests
	// Imports are the functions it links, as "module name", sorted.
	Imports []string
	// Unconfirmed: its description is that of its hutch.manifest, and is
	// compared with what the module itself says at the first call.
	Unconfirmed bool
	Tools       []Tool
}

// Tool is one tool of a [Module].
type Tool struct {
	// Own is the definition as the module gave it: arguments are held against
	// it. Published is what hosts see.
	Own, Published tool.Spec
	// Status and Reason are what it is for a caller that cannot ask a person.
	Status tool.Status
	Reason string
	// Asks: a caller that can may call it, and a person is asked before each call.
	Asks     bool
	Warnings []string
}

// Modules returns every file, in the order in which names were given away:
// shipped ones first, then as they were handed to Apply. What is in it must not
// be changed.
func (r *Registry) Modules() []Module {
	s := r.current.Load()
	out := make([]Module, 0, len(s.entries))
	for _, e := range s.entries {
		out = append(out, r.view(e))
	}
	return out
}

func (r *Registry) view(e *entry) Module {
	m := Module{
		Name: e.candidate.Name, Source: e.candidate.Source, Shipped: e.candidate.Shipped,
		Digest: e.candidate.Digest, Size: e.candidate.Size, Status: e.status, Reason: e.reason, Waits: e.waits,
	}
	if e.mount == nil {
		return m
	}
	def := e.mount.def
	m.Serving, m.Code, m.Dialect, m.Version = def.digest, def.code, string(def.kind), def.exported.Version
	m.Definitions = def.hash
	m.Requests, m.Imports, m.Unconfirmed = def.requests, slices.Clone(def.imports), !def.confirmed.Load()
	for _, t := range e.mount.tools {
		d := r.decide(tool.Caller{}, e.mount, t)
		m.Tools = append(m.Tools, Tool{Own: t.own, Published: t.public, Status: d.Status, Reason: d.Reason, Asks: d.Ask,
			Warnings: slices.Clone(t.warnings)})
	}
	return m
}
