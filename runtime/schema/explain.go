package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/hutch-run/hutch/protocol/abi"
)

const (
	maxProblems = 5  // told at once
	maxListed   = 20 // allowed values or names
	maxLeaves   = 200
	maxShown    = 60 // bytes of a value or a name
)

// A problem is one thing about a value that does not fit its schema.
type problem struct {
	path string // "" is the value itself
	text string
}

func (p problem) String() string {
	if p.path == "" {
		return p.text
	}
	return strconv.Quote(p.path) + ": " + p.text
}

// problemText joins problems into one line.
func problemText(found []problem) string {
	var lines []string
	for _, p := range found[:min(len(found), maxProblems)] {
		lines = append(lines, p.String())
	}
	if rest := len(found) - maxProblems; rest > 0 {
		lines = append(lines, fmt.Sprintf("%d more problems", rest))
	}
	return strings.Join(lines, "; ")
}

// An explainer puts the library's findings into words that a model can act on:
// where, what was found, what is allowed.
type explainer struct {
	value  any
	schema *jsonschema.Schema
	found  []problem
	index  map[string]*jsonschema.Schema // by location, made when needed
}

func (e *explainer) explain(err *jsonschema.ValidationError) []problem {
	e.collect(err)
	slices.SortStableFunc(e.found, func(a, b problem) int {
		if c := strings.Compare(a.path, b.path); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	return slices.Compact(e.found)
}

func (e *explainer) collect(err *jsonschema.ValidationError) {
	if len(e.found) >= maxLeaves {
		return
	}
	switch k := err.ErrorKind.(type) {
	case *kind.AnyOf:
		e.closest(err)
		return
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			e.closest(err)
			return
		}
	case *kind.PropertyNames, *kind.Contains, *kind.MinContains:
		e.add(err)
		return
	}
	if len(err.Causes) == 0 {
		e.add(err)
		return
	}
	for _, cause := range err.Causes {
		e.collect(cause)
	}
}

// closest explains the alternative that fits best: the one with the fewest
// problems, the first of these.
func (e *explainer) closest(err *jsonschema.ValidationError) {
	var best []problem
	for _, cause := range err.Causes {
		sub := explainer{value: e.value, schema: e.schema, index: e.index}
		if found := sub.explain(cause); best == nil || len(found) < len(best) {
			best = found
		}
	}
	for _, p := range best {
		if len(err.Causes) > 1 {
			p.text += fmt.Sprintf(" (the closest of %d forms)", len(err.Causes))
		}
		e.found = append(e.found, p)
	}
	if best == nil {
		e.add(err)
	}
}

func (e *explainer) add(err *jsonschema.ValidationError) {
	at := lookup(e.value, err.InstanceLocation)
	e.found = append(e.found, problem{path: pathText(err.InstanceLocation), text: e.words(err, at)})
}

// words says what is wrong with the value at.
func (e *explainer) words(err *jsonschema.ValidationError, at any) string {
	switch k := err.ErrorKind.(type) {
	case *kind.Required:
		return "missing " + quotedList(k.Missing)
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		return "unknown " + quotedList(k.Properties) + e.allowedNames(err)
	case *kind.Type:
		return fmt.Sprintf("found %s, allowed is %s", described(at), strings.Join(k.Want, " or "))
	case *kind.Enum:
		return fmt.Sprintf("found %s, allowed are %s", described(at), valueList(k.Want))
	case *kind.Const:
		return fmt.Sprintf("found %s, allowed is %s", described(at), shownValue(k.Want))
	case *kind.Pattern:
		return fmt.Sprintf("found %s, must match %s", described(at), abi.Cut(k.Want, 200))
	case *kind.Format:
		if k.Want == "regex" {
			return fmt.Sprintf("found %s, must be a regular expression: %s", described(at), abi.Cut(fmt.Sprint(k.Err), 200))
		}
		return fmt.Sprintf("found %s, must be of format %s", described(at), abi.Cut(k.Want, maxShown))
	case *kind.DependentRequired:
		return fmt.Sprintf("missing %s, needed beside %q", quotedList(k.Missing), abi.Cut(k.Prop, maxShown))
	case *kind.Dependency:
		return fmt.Sprintf("missing %s, needed beside %q", quotedList(k.Missing), abi.Cut(k.Prop, maxShown))
	case *kind.PropertyNames:
		return fmt.Sprintf("the name %q is not allowed here", abi.Cut(k.Property, maxShown))
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal, each must be different", k.Duplicates[0], k.Duplicates[1])
	case *kind.OneOf:
		return "fits more than one of the allowed forms, must fit exactly one"
	case *kind.Not:
		return fmt.Sprintf("found %s, which is ruled out", described(at))
	case *kind.FalseSchema:
		return "nothing is allowed here, leave it out"
	}
	return boundWords(err.ErrorKind, at)
}

// boundWords speaks of sizes and ranges.
func boundWords(k jsonschema.ErrorKind, at any) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return fmt.Sprintf("found %s, at least %s", described(at), ratText(k.Want))
	case *kind.Maximum:
		return fmt.Sprintf("found %s, at most %s", described(at), ratText(k.Want))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("found %s, must be more than %s", described(at), ratText(k.Want))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("found %s, must be less than %s", described(at), ratText(k.Want))
	case *kind.MultipleOf:
		return fmt.Sprintf("found %s, must be a multiple of %s", described(at), ratText(k.Want))
	case *kind.MinLength:
		return fmt.Sprintf("%d characters, at least %d", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("%d characters, at most %d", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("%d items, at least %d", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("%d items, at most %d", k.Got, k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("%d items too many", k.Count)
	case *kind.MinProperties:
		return fmt.Sprintf("%d properties, at least %d", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("%d properties, at most %d", k.Got, k.Want)
	case *kind.Contains:
		return "none of the items is of the kind that must be there"
	case *kind.MinContains:
		return fmt.Sprintf("%d items of the kind that must be there, at least %d", len(k.Got), k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("%d items of a kind, at most %d", len(k.Got), k.Want)
	}
	return "does not fit the schema at " + abi.Cut(strings.Join(k.KeywordPath(), "/"), maxShown)
}

// allowedNames lists the properties of the schema that refused others.
func (e *explainer) allowedNames(err *jsonschema.ValidationError) string {
	s := e.at(err.SchemaURL)
	if s == nil || len(s.Properties) == 0 {
		return ""
	}
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return ", allowed are " + quotedList(names)
}

// at returns the schema at a location, nil if there is none.
func (e *explainer) at(location string) *jsonschema.Schema {
	if e.index == nil {
		e.index = map[string]*jsonschema.Schema{}
		eachSchema(e.schema, func(s *jsonschema.Schema) { e.index[s.Location] = s })
	}
	return e.index[location]
}

// lookup follows a path that the library gave for this very value.
func lookup(v any, path []string) any {
	for _, step := range path {
		switch inner := v.(type) {
		case map[string]any:
			v = inner[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(inner) {
				return nil
			}
			v = inner[i]
		default:
			return nil
		}
	}
	return v
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// pathText writes a path as filters.labels[2].
func pathText(path []string) string {
	var b strings.Builder
	for _, step := range path {
		_, err := strconv.Atoi(step)
		switch {
		case err == nil:
			b.WriteString("[" + step + "]")
		case !plainName.MatchString(step):
			b.WriteString("[" + strconv.Quote(abi.Cut(step, maxShown)) + "]")
		case b.Len() > 0:
			b.WriteString("." + abi.Cut(step, maxShown))
		default:
			b.WriteString(abi.Cut(step, maxShown))
		}
	}
	return abi.Cut(b.String(), 200)
}

// described says what a value is, in few words.
func described(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case string:
		return "string " + shownValue(v)
	case json.Number:
		return "number " + shownValue(v)
	}
	return shownValue(v)
}

// shownValue is a value as JSON, cut.
func shownValue(v any) string {
	switch v := v.(type) {
	case json.Number:
		return abi.Cut(string(v), maxShown)
	case string:
		return strconv.Quote(abi.Cut(v, maxShown))
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "a value"
	}
	return abi.Cut(strings.TrimSpace(b.String()), maxShown)
}

func valueList(values []any) string {
	var out []string
	for _, v := range values[:min(len(values), maxListed)] {
		out = append(out, shownValue(v))
	}
	return joined(out, len(values))
}

func quotedList(names []string) string {
	var out []string
	for _, name := range names[:min(len(names), maxListed)] {
		out = append(out, strconv.Quote(abi.Cut(name, maxShown)))
	}
	return joined(out, len(names))
}

func joined(shown []string, of int) string {
	if rest := of - len(shown); rest > 0 {
		shown = append(shown, fmt.Sprintf("%d more", rest))
	}
	return strings.Join(shown, ", ")
}

func ratText(r *big.Rat) string {
	if r.IsInt() {
		return abi.Cut(r.Num().String(), maxShown)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
