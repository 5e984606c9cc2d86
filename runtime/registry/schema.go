package registry

import (
	"bytes"
	"container/list"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxSchemaNodes bounds how many JSON values a schema consists of: the time
	// it takes to compile one grows with the square of it.
	maxSchemaNodes = 10_000
	// maxSchemaPaths bounds the bytes of the paths to all these values, each of
	// which the compiler keeps as a string.
	maxSchemaPaths = 4 << 20
	// hotSchemaCount is how many compiled schemas are kept.
	hotSchemaCount = 128
	// schemaURL names a schema to its compiler. Nothing is ever loaded from it.
	schemaURL = "schema:///tool"
)

// A schema is a module's own JSON Schema, compiled when first needed.
type schema struct {
	raw      json.RawMessage
	compiled atomic.Pointer[compiledSchema]
	compile  sync.Mutex // one compilation at a time
}

// A compiledSchema validates one value at a time, because it counts the steps.
type compiledSchema struct {
	mu       sync.Mutex
	full     *jsonschema.Schema
	inverse  *jsonschema.Schema // not full: cheap, since it collects no errors
	meter    *meter
	warnings []string
}

// get returns s compiled, and keeps it among the hot ones.
func (s *schema) get(hot *hotSchemas) (*compiledSchema, error) {
	c := s.compiled.Load()
	if c == nil {
		s.compile.Lock()
		defer s.compile.Unlock()
		if c = s.compiled.Load(); c == nil {
			var err error
			if c, err = compileSchema(s.raw); err != nil {
				return nil, err
			}
			s.compiled.Store(c)
		}
	}
	hot.used(s)
	return c, nil
}

// compileSchema compiles a schema from a stranger. Drafts 4 to 2020-12 are
// read, the latest if it does not say. References stay within the schema.
func compileSchema(raw json.RawMessage) (c *compiledSchema, err error) {
	defer func() {
		if p := recover(); p != nil {
			c, err = nil, fmt.Errorf("cannot be compiled: %.100s", fmt.Sprint(p))
		}
	}()
	doc, err := decode(raw)
	if err != nil {
		return nil, err
	}
	if err := measure(doc); err != nil {
		return nil, err
	}
	c = &compiledSchema{meter: &meter{}}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	compiler.UseRegexpEngine(c.pattern)
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, compileError(err)
	}
	if err := compiler.AddResource(schemaURL+"-inverse", map[string]any{"not": map[string]any{"$ref": schemaURL}}); err != nil {
		return nil, compileError(err)
	}
	if c.full, err = compiler.Compile(schemaURL); err != nil {
		return nil, compileError(err)
	}
	if c.inverse, err = compiler.Compile(schemaURL + "-inverse"); err != nil {
		return nil, compileError(err)
	}
	slices.Sort(c.warnings)
	c.warnings = slices.Compact(c.warnings)
	return c, c.meter.attach(c.full)
}

// compileError says what is wrong in one line.
func compileError(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	text = strings.ReplaceAll(text, schemaURL, "schema")
	return errors.New(cut(text, 300))
}

// noLoader refuses whatever a schema points to outside itself.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("references stay within the schema: copy what it refers to into $defs")
}

// decode parses JSON that was checked before, keeping numbers as written.
func decode(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// measure refuses schemas that would take too much to compile.
func measure(doc any) error {
	nodes, paths := 0, 0
	var walk func(v any, path int) bool
	walk = func(v any, path int) bool {
		nodes++
		if paths += path; nodes > maxSchemaNodes || paths > maxSchemaPaths {
			return false
		}
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if !walk(value, path+1+len(key)) {
					return false
				}
			}
		case []any:
			for _, value := range v {
				if !walk(value, path+6) {
					return false
				}
			}
		}
		return true
	}
	if !walk(doc, 0) {
		return fmt.Errorf("more than %d values, or keys of more than %d bytes in all paths", maxSchemaNodes, maxSchemaPaths)
	}
	return nil
}

// hotSchemas remembers which schemas were used last and lets go of the others.
type hotSchemas struct {
	most  int
	mu    sync.Mutex
	order list.List // of *schema, the last used first
	where map[*schema]*list.Element
}

func (h *hotSchemas) used(s *schema) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.where[s]; ok {
		h.order.MoveToFront(e)
		return
	}
	if h.where == nil {
		h.where = map[*schema]*list.Element{}
	}
	h.where[s] = h.order.PushFront(s)
	if h.order.Len() > h.most {
		last := h.order.Remove(h.order.Back()).(*schema)
		delete(h.where, last)
		last.compiled.Store(nil)
	}
}
