package schema

import (
	"bytes"
	"cmp"
	"container/list"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hutch-run/hutch/protocol/abi"
)

const (
	// maxSchemaNodes bounds how many JSON values a schema consists of: the time
	// it takes to compile one grows with the square of it.
	maxSchemaNodes = 10_000
	// maxSchemaPaths bounds the bytes of the paths to all these values, each of
	// which the compiler keeps as a string.
	maxSchemaPaths = 4 << 20
	// maxDigits bounds a number; a float64 ends at 309.
	maxDigits = 400
	// hotSchemaCount is how many compiled schemas are kept.
	hotSchemaCount = 128
	// schemaURL names a schema to its compiler. Nothing is ever loaded from it.
	schemaURL = "schema:///tool"
)

// A Schema is a JSON Schema as it was written, compiled when it is first needed.
type Schema struct {
	raw     json.RawMessage
	ready   atomic.Pointer[compiled]
	compile sync.Mutex // one compilation at a time
}

// New returns a schema, which it does not look at. raw must not be changed.
func New(raw json.RawMessage) *Schema { return &Schema{raw: raw} }

// Compile finds out whether s compiles, and returns what it means otherwise than
// it says. The outcome is not kept: most schemas are never needed.
func (s *Schema) Compile() (warnings []string, err error) {
	c, err := compileSchema(s.raw)
	if err != nil {
		return nil, err
	}
	return c.warnings, nil
}

// Check says in one line what about a value, which rawjson.Check has passed, does
// not fit; "" means that it fits. The error says that it could not be found out.
// s stays compiled while it is among hot.
func (s *Schema) Check(value json.RawMessage, hot *Hot) (misfits string, err error) {
	c, err := s.get(hot)
	if err != nil {
		return "", fmt.Errorf("the tool's schema: %w", err)
	}
	found, err := c.validate(value)
	return problemText(found), err
}

// A compiled schema validates one value at a time, because it counts the steps.
type compiled struct {
	mu       sync.Mutex
	full     *jsonschema.Schema
	inverse  *jsonschema.Schema // not full: cheap, since it collects no errors
	meter    *meter
	warnings []string
}

// get returns s compiled, and keeps it among the hot ones.
func (s *Schema) get(hot *Hot) (*compiled, error) {
	c := s.ready.Load()
	if c == nil {
		s.compile.Lock()
		defer s.compile.Unlock()
		if c = s.ready.Load(); c == nil {
			var err error
			if c, err = compileSchema(s.raw); err != nil {
				return nil, err
			}
			s.ready.Store(c)
		}
	}
	hot.used(s)
	return c, nil
}

// compileSchema compiles a schema from a stranger. Drafts 4 to 2020-12 are
// read, the latest if it does not say. References stay within the schema.
func compileSchema(raw json.RawMessage) (c *compiled, err error) {
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
	c = &compiled{meter: &meter{}}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	compiler.UseRegexpEngine(c.pattern)
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, compileError(doc, err)
	}
	if err := compiler.AddResource(schemaURL+"-inverse", map[string]any{"not": map[string]any{"$ref": schemaURL}}); err != nil {
		return nil, compileError(doc, err)
	}
	if c.full, err = compiler.Compile(schemaURL); err != nil {
		return nil, compileError(doc, err)
	}
	if c.inverse, err = compiler.Compile(schemaURL + "-inverse"); err != nil {
		return nil, compileError(doc, err)
	}
	slices.Sort(c.warnings)
	c.warnings = slices.Compact(c.warnings)
	return c, c.meter.attach(c.full)
}

// compileError says what is wrong in one line.
func compileError(doc any, err error) error {
	var broken *jsonschema.SchemaValidationError
	var detail *jsonschema.ValidationError
	if errors.As(err, &broken) && errors.As(broken.Err, &detail) {
		e := explainer{value: doc}
		return fmt.Errorf("is no JSON Schema: %s", problemText(e.explain(detail)))
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	return errors.New(abi.Cut(strings.ReplaceAll(text, schemaURL, "schema"), 300))
}

// noLoader refuses whatever a schema points to outside itself.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("references stay within the schema: copy what it refers to into $defs")
}

// decode parses JSON that was checked before, keeping numbers as written. It
// refuses numbers that no program holds: the validator would write them out.
func decode(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return v, holdable(v)
}

// nodes counts the values in a value, itself included.
func nodes(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			n += nodes(value)
		}
	case []any:
		for _, value := range v {
			n += nodes(value)
		}
	}
	return n
}

func holdable(v any) error {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			if err := holdable(value); err != nil {
				return err
			}
		}
	case []any:
		for _, value := range v {
			if err := holdable(value); err != nil {
				return err
			}
		}
	case json.Number:
		if n := digits(string(v)); n > maxDigits {
			return fmt.Errorf("number %s has %d digits when it is written out, at most %d", abi.Cut(string(v), maxShown), n, maxDigits)
		}
	}
	return nil
}

// digits counts, roughly, what a number takes when it is written out.
func digits(number string) int {
	mantissa, exponent, ok := strings.Cut(strings.ToLower(number), "e")
	if !ok {
		return len(number)
	}
	n, err := strconv.Atoi(exponent)
	if err != nil { // more than an int holds
		return math.MaxInt
	}
	return len(mantissa) + max(n, -n)
}

// measure refuses schemas that would take too much to compile.
func measure(doc any) error {
	count, paths := 0, 0
	var walk func(v any, path int) bool
	walk = func(v any, path int) bool {
		count++
		if paths += path; count > maxSchemaNodes || paths > maxSchemaPaths {
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

// Hot remembers which schemas were used last, and lets go of what others were
// compiled to. The zero value is ready.
type Hot struct {
	most  int // 0 means hotSchemaCount
	mu    sync.Mutex
	order list.List // of *Schema, the last used first
	where map[*Schema]*list.Element
}

func (h *Hot) used(s *Schema) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.where[s]; ok {
		h.order.MoveToFront(e)
		return
	}
	if h.where == nil {
		h.where = map[*Schema]*list.Element{}
	}
	h.where[s] = h.order.PushFront(s)
	if h.order.Len() > cmp.Or(h.most, hotSchemaCount) {
		last := h.order.Remove(h.order.Back()).(*Schema)
		delete(h.where, last)
		last.ready.Store(nil)
	}
}

// Describe names a value, which rawjson.Check has passed, as problems do.
func Describe(value json.RawMessage) (string, error) {
	v, err := decode(value)
	if err != nil {
		return "", err
	}
	return described(v), nil
}
