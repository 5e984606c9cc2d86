package main

import (
	"errors"
	"io/fs"

	"github.com/hutch-run/hutch/protocol/tool"
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
