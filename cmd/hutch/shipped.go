package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

// shippedSource is what stands in a candidate's Source for a module that came
// with the binary.
const shippedSource = "shipped"

// openShipped returns the modules that came with the binary.
func (p program) openShipped() (*toolswasm.Set, error) {
	if p.shipped != nil {
		return p.shipped, nil
	}
	return toolswasm.Shipped()
}

// reserved are the names that the modules of a set have, so that no other module
// can: those of files, and those of tools. Each says whose it is, as a digest.
type reserved struct{ files, tools map[string]string }

// reservedNames reads what the shipped modules say about themselves.
func (p program) reservedNames() (r reserved, err error) {
	set, err := p.openShipped()
	if err != nil {
		return r, err
	}
	r = reserved{files: map[string]string{}, tools: map[string]string{}}
	for _, m := range set.Modules() {
		r.files[m.Name] = m.Digest
		body, err := set.Fetch(m.Digest)
		if err != nil {
			return r, err
		}
		for _, name := range stampedTools(body) {
			r.tools[name] = m.Digest
		}
	}
	return r, nil
}

// stampedTools are the tools that a module's manifest names. One that cannot be
// used, as lists say, has none.
func stampedTools(body []byte) (names []string) {
	checked, err := wasmbin.Check(body, wasmbin.Budget{MemoryBytes: 4 << 30})
	if err != nil {
		return nil
	}
	said, err := dialect.ParseDescription(dialect.Hutch, checked.Custom[abi.ManifestSection])
	if err != nil {
		return nil
	}
	for _, t := range said.Tools {
		names = append(names, t.Name)
	}
	return names
}

// warnings says which names a module cannot have beside the shipped ones. That it
// is one of these is no reason to warn.
func (r reserved) warnings(file string, m registry.Module) []string {
	var all []string
	if owner := r.files[file]; owner != "" && owner != m.Digest {
		all = append(all, fmt.Sprintf("a file named %s belongs to hutch and would not be served: choose another name", file))
	}
	for _, t := range m.Tools {
		if owner := r.tools[t.Published.Name]; owner != "" && owner != m.Digest {
			all = append(all, fmt.Sprintf("tool %s belongs to hutch, so the module would not be served: choose another name", t.Published.Name))
		}
	}
	return all
}

// candidatesOf offers the modules of a set to a registry.
func candidatesOf(set *toolswasm.Set) []tool.Candidate {
	var all []tool.Candidate
	for _, m := range set.Modules() {
		all = append(all, tool.Candidate{Name: m.Name, Source: shippedSource, Shipped: true, Digest: m.Digest, Size: m.Size})
	}
	return all
}

// fetchFrom fetches a shipped module's bytes, or else asks next.
func fetchFrom(set *toolswasm.Set, next func(string) ([]byte, error)) func(string) ([]byte, error) {
	return func(digest string) ([]byte, error) {
		body, err := set.Fetch(digest)
		if errors.Is(err, fs.ErrNotExist) {
			return next(digest)
		}
		return body, err
	}
}
