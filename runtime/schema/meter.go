package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/hutch-run/hutch/protocol/abi"
)

const (
	// A validation may take baseSteps, and stepsPerNode more for each JSON value
	// in what is validated. A plain schema takes about two steps for each value;
	// a hostile one doubles them with every level.
	baseSteps    = 100_000
	stepsPerNode = 50
	// maxExplainSteps bounds looking for the reasons of a refusal, which takes
	// memory for each one.
	maxExplainSteps = 100_000
	// maxValidation is the backstop, should a step take longer than it should.
	maxValidation = 10 * time.Second
	// maxPattern and maxProgram bound a regular expression, in bytes and in
	// instructions once its repetitions are written out.
	maxPattern = 1000
	maxProgram = 5000
)

// errTooMuch ends a validation; it travels as a panic through the library.
var errTooMuch = errors.New("takes too many steps to check")

// A meter counts the steps of the one validation that runs.
type meter struct {
	running  bool
	left     int64
	ticks    int
	deadline time.Time
}

func (m *meter) start(steps int64) {
	*m = meter{running: true, left: steps, deadline: time.Now().Add(maxValidation)}
}

func (m *meter) stop() { m.running = false }

func (m *meter) spend(steps int64) {
	if !m.running {
		return // compiling, which is bounded by size
	}
	m.ticks++
	if m.left -= steps; m.left < 0 || m.ticks%64 == 0 && time.Now().After(m.deadline) {
		panic(errTooMuch)
	}
}

// attach makes every schema that can be reached from s pay before it looks at
// a value. The library has one hook that comes first: the format.
func (m *meter) attach(s *jsonschema.Schema) (err error) {
	eachSchema(s, func(s *jsonschema.Schema) {
		if s.DynamicRef != nil || s.RecursiveRef != nil {
			err = errors.New("$dynamicRef and $recursiveRef are not supported: use $ref")
		}
		m.wrap(s)
	})
	return err
}

// eachSchema visits s and every schema that can be reached from it, once.
func eachSchema(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	seen := map[*jsonschema.Schema]bool{}
	queue := []*jsonschema.Schema{s}
	for len(queue) > 0 {
		s, queue = queue[0], queue[1:]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		queue = append(queue, children(s)...) // before a visit takes some away
		visit(s)
	}
}

// wrap puts the meter before a schema's own checks. Comparing with the values
// of enum and const, which the library does before anything else, moves behind it.
func (m *meter) wrap(s *jsonschema.Schema) {
	own := s.Format
	cost := price(s)
	s.Format = &jsonschema.Format{Name: "any", Validate: func(v any) error {
		m.spend(cost.of(v))
		if own != nil {
			return own.Validate(v)
		}
		return nil
	}}
	if own != nil {
		s.Format.Name = own.Name
	}
	if s.Enum != nil || s.Const != nil {
		s.Extensions = append(s.Extensions, newChoice(m, s))
		s.Enum, s.Const = nil, nil
	}
	if s.PropertyNames != nil {
		s.Extensions = append(s.Extensions, &nameRule{s.PropertyNames})
		s.PropertyNames = nil
	}
}

// A nameRule is the keyword propertyNames. The library's own one reports a
// place that it overwrites later.
type nameRule struct{ schema *jsonschema.Schema }

// Validate is called by the library, after the schema was paid for.
func (r *nameRule) Validate(ctx *jsonschema.ValidatorContext, v any) {
	object, ok := v.(map[string]any)
	if !ok {
		return
	}
	for name := range object {
		if ctx.Validate(r.schema, name, []string{name}) != nil {
			ctx.AddError(&kind.PropertyNames{Property: name})
		}
	}
}

// A choice is the keywords enum and const of one schema.
type choice struct {
	meter  *meter
	values *jsonschema.Enum
	only   *any
	words  map[string]bool // the strings of values
	others []any           // the rest of values
}

func newChoice(m *meter, s *jsonschema.Schema) *choice {
	c := &choice{meter: m, values: s.Enum, only: s.Const, words: map[string]bool{}}
	if s.Enum == nil {
		return c
	}
	for _, v := range s.Enum.Values {
		if word, ok := v.(string); ok {
			c.words[word] = true
		} else {
			c.others = append(c.others, v)
		}
	}
	return c
}

// Validate is called by the library, after the schema was paid for.
func (c *choice) Validate(ctx *jsonschema.ValidatorContext, v any) {
	if c.only != nil && !c.equal(ctx, v, *c.only) {
		ctx.AddError(&kind.Const{Got: v, Want: *c.only})
	}
	if c.values != nil && !c.listed(ctx, v) {
		ctx.AddError(&kind.Enum{Got: v, Want: c.values.Values})
	}
}

func (c *choice) listed(ctx *jsonschema.ValidatorContext, v any) bool {
	if word, ok := v.(string); ok {
		return c.words[word]
	}
	return slices.ContainsFunc(c.others, func(want any) bool { return c.equal(ctx, v, want) })
}

func (c *choice) equal(ctx *jsonschema.ValidatorContext, v, want any) bool {
	c.meter.spend(weight(want))
	same, err := ctx.Equals(v, want)
	return err == nil && same
}

// A tariff is what one visit of a schema costs, its sub-schemas left out.
type tariff struct {
	base   int64 // whatever the value is
	each   int64 // for each member of the value
	unique bool
}

func price(s *jsonschema.Schema) tariff {
	t := tariff{base: 1, each: 1 + int64(len(s.PatternProperties)), unique: s.UniqueItems}
	t.base += int64(len(s.Required) + len(s.AllOf) + len(s.AnyOf) + len(s.OneOf))
	t.base += int64(len(s.Dependencies) + len(s.DependentSchemas) + len(s.DependentRequired))
	for _, names := range s.DependentRequired {
		t.base += int64(len(names))
	}
	for _, d := range s.Dependencies {
		if names, ok := d.([]string); ok {
			t.base += int64(len(names))
		}
	}
	return t
}

func (t tariff) of(v any) int64 {
	switch v := v.(type) {
	case map[string]any:
		return t.base + t.each*int64(len(v))
	case []any:
		cost := t.base + t.each*int64(len(v))
		switch { // short arrays are compared pair by pair, others hashed
		case t.unique && len(v) <= 20:
			cost += weight(v) * int64(len(v))
		case t.unique:
			cost += weight(v)
		}
		return cost
	case string:
		return t.base + int64(len(v)/256)
	}
	return t.base
}

// weight is what it takes to compare or hash a value.
func weight(v any) int64 {
	n := int64(1)
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			n += weight(value)
		}
	case []any:
		for _, value := range v {
			n += weight(value)
		}
	case string:
		n += int64(len(v) / 256)
	case json.Number:
		n += 2 // they are compared as fractions
	}
	return n
}

// children are the schemas that s refers to.
func children(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
		s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema}
	for _, group := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
		out = append(out, group...)
	}
	for _, group := range []map[string]*jsonschema.Schema{s.Properties, s.DependentSchemas} {
		for _, child := range group {
			out = append(out, child)
		}
	}
	for _, child := range s.PatternProperties {
		out = append(out, child)
	}
	for _, child := range s.Dependencies {
		out = appendSchemas(out, child)
	}
	for _, child := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		out = appendSchemas(out, child)
	}
	return out
}

// appendSchemas takes the fields that may hold something else.
func appendSchemas(out []*jsonschema.Schema, v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return append(out, v)
	case []*jsonschema.Schema:
		return append(out, v...)
	}
	return out
}

// pattern compiles a schema's regular expression. One in a syntax that Go does
// not have matches everything, with a warning: the tool has to look itself.
func (c *compiled) pattern(text string) (jsonschema.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("pattern of %d bytes, at most %d", len(text), maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if foreign(err) {
		if !c.meter.running { // else it is a value, of format regex
			c.warnings = append(c.warnings, fmt.Sprintf("pattern %q is not checked by hutch: %s", abi.Cut(text, 60), err))
		}
		return anything(text), nil
	}
	if err != nil {
		return nil, err
	}
	size := programSize(parsed)
	if size > maxProgram {
		return nil, fmt.Errorf("pattern %q: more than %d steps when its repetitions are written out", abi.Cut(text, 60), maxProgram)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &meteredRegexp{re, int64(size), c.meter}, nil
}

// foreign reports whether a pattern may be right elsewhere: JSON Schema has the
// syntax of JavaScript, with look-around and other things that Go leaves out.
func foreign(err error) bool {
	var e *syntax.Error
	return errors.As(err, &e) && slices.Contains([]syntax.ErrorCode{syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape,
		syntax.ErrInvalidCharRange, syntax.ErrInvalidRepeatOp, syntax.ErrInvalidRepeatSize, syntax.ErrInvalidNamedCapture}, e.Code)
}

// programSize estimates the instructions of a regular expression.
func programSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		size += programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, maxProgram+1)
}

type meteredRegexp struct {
	*regexp.Regexp
	size  int64
	meter *meter
}

func (r *meteredRegexp) MatchString(s string) bool {
	r.meter.spend(1 + r.size*int64(len(s))/64)
	return r.Regexp.MatchString(s)
}

type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }
