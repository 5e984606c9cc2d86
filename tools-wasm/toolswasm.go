// Package toolswasm holds the modules that hutch is shipped with.
//
// The build writes its folder, and the compiler embeds it as it is then:
//
//	NAME.wasm    one module for each folder of guests/, with its description in
//	             the custom section hutch.manifest
//	index.json   what was built, written last, as [Index] writes it:
//	             [{"name":"text.wasm","digest":"<sha256, 64 hex digits>","size":4289034}, ...]
//
//	policy.yaml  what is granted to the modules that ask for something, in the
//	             grammar of a policy file; it counts for the digests of the index
//
// The index is there so that a program can say what it has without touching
// megabytes of modules. A folder without one holds no modules: that is a fresh
// clone, which builds and runs.
package toolswasm

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

const (
	indexName  = "index.json"
	policyName = "policy.yaml"
)

//go:embed *
var folder embed.FS

// Module is one line of the index.
type Module struct {
	Name   string `json:"name"`   // bare file name, such as text.wasm
	Digest string `json:"digest"` // SHA-256, 64 lower-case hex digits
	Size   int64  `json:"size"`   // bytes
}

// Set is a folder of built modules. It is immutable and may be used by several
// goroutines.
type Set struct {
	files   fs.FS
	modules []Module
}

// Shipped returns the modules that are embedded in this program; none if it was
// built before them.
func Shipped() (*Set, error) { return Open(folder) }

// Open returns the modules that the index of a folder names, without reading
// them. An index that does not fit its folder is an error: then the build was
// interrupted, or somebody else wrote there.
func Open(files fs.FS) (*Set, error) {
	text, err := fs.ReadFile(files, indexName)
	if errors.Is(err, fs.ErrNotExist) {
		return &Set{files: files}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("shipped modules: %w", err)
	}
	s := &Set{files: files}
	if s.modules, err = parseIndex(text); err == nil {
		err = s.checkFiles()
	}
	if err != nil {
		return nil, fmt.Errorf("shipped modules: %w; run make tools", err)
	}
	return s, nil
}

// Modules returns what there is, sorted by name. The slice is the caller's.
func (s *Set) Modules() []Module { return slices.Clone(s.modules) }

// Policy returns the text of the policy that the modules are shipped with: what is
// granted to those that ask for something. It is nil if none does.
func (s *Set) Policy() ([]byte, error) {
	text, err := fs.ReadFile(s.files, policyName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("shipped modules: %w", err)
	}
	return text, nil
}

// Fetch returns the bytes of the module with a digest, after checking that
// they have it. For a digest that is not in the index, errors.Is(err,
// fs.ErrNotExist) holds.
func (s *Set) Fetch(digest string) ([]byte, error) {
	i := slices.IndexFunc(s.modules, func(m Module) bool { return m.Digest == digest })
	if i < 0 {
		return nil, fmt.Errorf("shipped module %.64s: %w", digest, fs.ErrNotExist)
	}
	m := s.modules[i]
	b, err := fs.ReadFile(s.files, m.Name)
	if err != nil {
		return nil, fmt.Errorf("shipped module: %w", err)
	}
	if got := digestOf(b); got != m.Digest {
		return nil, fmt.Errorf("shipped module %s: has digest %s, the index says %s", m.Name, got, m.Digest)
	}
	return b, nil
}

// Index returns the text of index.json for the modules that a folder holds.
// The build writes it beside them.
func Index(files fs.FS) ([]byte, error) {
	names, err := fs.Glob(files, "*.wasm")
	if err != nil {
		return nil, err
	}
	modules := []Module{}
	for _, name := range names { // in order: Glob reads a sorted folder
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		modules = append(modules, Module{name, digestOf(b), int64(len(b))})
	}
	text, err := json.MarshalIndent(modules, "", "  ")
	return append(text, '\n'), err
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// parseIndex is strict, since only the build writes the index.
func parseIndex(text []byte) ([]Module, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var modules []Module
	if err := d.Decode(&modules); err != nil {
		return nil, fmt.Errorf("%s: %w", indexName, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more after the list", indexName)
	}
	last := ""
	for _, m := range modules {
		if err := m.check(last); err != nil {
			return nil, fmt.Errorf("%s: %w", indexName, err)
		}
		last = m.Name
	}
	return modules, nil
}

// check holds an entry to its form; last is the name before it.
func (m Module) check(last string) error {
	if base, ok := strings.CutSuffix(m.Name, ".wasm"); !ok || base == "" || strings.ContainsAny(m.Name, `/\`) {
		return fmt.Errorf("%q is no bare name of a .wasm file", m.Name)
	}
	if m.Name <= last {
		return fmt.Errorf("%s comes after %s; names are sorted and appear once", m.Name, last)
	}
	if b, err := hex.DecodeString(m.Digest); err != nil || len(b) != sha256.Size || strings.ToLower(m.Digest) != m.Digest {
		return fmt.Errorf("%s: digest %q is no lower-case SHA-256", m.Name, m.Digest)
	}
	return nil
}

// checkFiles compares sizes, which costs no reading.
func (s *Set) checkFiles() error {
	for _, m := range s.modules {
		info, err := fs.Stat(s.files, m.Name)
		if err != nil {
			return err
		}
		if info.Size() != m.Size {
			return fmt.Errorf("%s: has %d bytes, %s says %d", m.Name, info.Size(), indexName, m.Size)
		}
	}
	return nil
}
