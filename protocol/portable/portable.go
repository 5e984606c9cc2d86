// Package portable makes a tool's definition fit for every host, and hashes it.
package portable

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

const (
	// maxDescription is in characters; OpenAI refuses above 1,024.
	maxDescription = 1000
	maxTitle       = 200
	maxWarnings    = 20
	// maxShown is in bytes, of text from outside in an error.
	maxShown = 60
	// maxPasses is how often a definition may need rewriting before it is given up.
	maxPasses = 4
)

// Spec returns s as hosts get to see it: changed as little as makes every
// known host accept it, because one definition that a host chokes on costs the
// whole server. Each change is told in a warning, one line each, at most 20.
//
//   - Name matches ^[a-zA-Z][a-zA-Z0-9_-]{0,47}$; dots, slashes and spaces become _.
//   - Description has 1 to 1,000 characters: cut, or taken from title or name.
//   - Hidden characters (control, bidirectional, zero width, tags) are removed.
//   - InputSchema is an object schema as [tool.Spec] wants it, without $schema, with
//     properties, with local references inlined unless they are recursive, with
//     sub-schemas that are objects, and arrays that have items. Combinators at the
//     root (oneOf, anyOf, allOf, not, if) are replaced by the properties they name.
//   - OutputSchema gets the same care, but keeps its combinators; one that is no
//     object schema, or cannot be made portable, is dropped.
//
// What comes out may allow more than the module's own schema, never less:
// arguments are to be validated against the latter. Schemas come out compact,
// with numbers and the order of keys as written. Spec of its own result is
// the same again. The error wraps [tool.ErrRejected] and says what stands in the way.
func Spec(s tool.Spec) (tool.Spec, []string, error) {
	var p profiler
	for range maxPasses {
		next, err := p.pass(s)
		if err != nil {
			return tool.Spec{}, nil, err
		}
		if sameSpec(s, next) {
			return next, p.warnings, nil
		}
		s = next
	}
	return tool.Spec{}, nil, rejectf("tool %s: its schema changes each time it is simplified: write it without references", shown(s.Name))
}

// A rejection is an [tool.ErrRejected] that speaks for itself.
type rejection struct{ text string }

func (r *rejection) Error() string { return r.text }
func (r *rejection) Unwrap() error { return tool.ErrRejected }

func rejectf(format string, args ...any) error {
	return &rejection{fmt.Sprintf(format, args...)}
}

func sameSpec(a, b tool.Spec) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Description == b.Description &&
		bytes.Equal(a.InputSchema, b.InputSchema) && bytes.Equal(a.OutputSchema, b.OutputSchema) &&
		(a.Annotations == nil) == (b.Annotations == nil) && (a.Annotations == nil || *a.Annotations == *b.Annotations)
}

// A profiler gathers the warnings of one definition.
type profiler struct{ warnings []string }

func (p *profiler) warnf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch n := len(p.warnings); {
	case slices.Contains(p.warnings, text): // said in an earlier pass
	case n < maxWarnings-1:
		p.warnings = append(p.warnings, text)
	case n == maxWarnings-1:
		p.warnings = append(p.warnings, "more warnings are left out")
	}
}

func (p *profiler) pass(s tool.Spec) (tool.Spec, error) {
	name, err := p.name(s.Name)
	if err != nil {
		return tool.Spec{}, err
	}
	fail := func(err error) (tool.Spec, error) { return tool.Spec{}, rejectf("tool %s: %s", shown(s.Name), err) }
	out := tool.Spec{Name: name, Annotations: s.Annotations}
	if out.Title, err = p.line("title", s.Title, maxTitle); err != nil {
		return fail(err)
	}
	if out.Description, err = p.description(s, out); err != nil {
		return fail(err)
	}
	if s.Annotations != nil {
		a := *s.Annotations
		if a.Title, err = p.line("annotations.title", a.Title, maxTitle); err != nil {
			return fail(err)
		}
		out.Annotations = &a
	}
	if out.InputSchema, err = p.inputSchema(s.InputSchema); err != nil {
		return fail(err)
	}
	out.OutputSchema = p.outputSchema(s.OutputSchema)
	return out, nil
}

var (
	nameRE = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,47}$`)
	keyRE  = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
)

func portableKey(name string) bool { return keyRE.MatchString(name) }

// CheckName says what is wrong with a name that hosts are to see, nil if they all
// take it.
func CheckName(name string) error {
	if !nameRE.MatchString(name) {
		return rejectName(name)
	}
	return nil
}

func rejectName(name string) error {
	return rejectf("tool name %s: allowed are a letter and up to 47 more letters, digits, _ and -", shown(name))
}

func (p *profiler) name(name string) (string, error) {
	fixed := strings.Map(func(r rune) rune {
		if strings.ContainsRune("./ ", r) {
			return '_'
		}
		return r
	}, name)
	if CheckName(fixed) != nil {
		return "", rejectName(name)
	}
	if fixed != name {
		p.warnf("name %s: listed as %s, because hosts refuse dots, slashes and spaces", shown(name), fixed)
	}
	return fixed, nil
}

func (p *profiler) description(s, out tool.Spec) (string, error) {
	text, err := p.line("description", s.Description, maxDescription)
	switch {
	case err != nil:
		return "", err
	case text != "":
		return text, nil
	case out.Title != "":
		p.warnf("description: empty, the title stands in for it")
		return out.Title, nil
	}
	p.warnf("description: empty, the name stands in for it")
	return out.Name, nil
}

// line cleans a text for people and models, and cuts it to so many characters.
func (p *profiler) line(where, text string, most int) (string, error) {
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("%s: invalid UTF-8", where)
	}
	text = strings.TrimSpace(p.visible(where, text))
	if n := utf8.RuneCountInString(text); n > most {
		p.warnf("%s: %d characters, cut to %d", where, n, most)
		text = strings.TrimSpace(cutRunes(text, most-1)) + "…"
	}
	return text, nil
}

func cutRunes(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// visible removes what a reader would not see but a model would.
func (p *profiler) visible(where, text string) string {
	if !hasHidden(text) {
		return text
	}
	var first rune
	count := 0
	clean := strings.Map(func(r rune) rune {
		if !hidden(r) {
			return r
		}
		if count++; count == 1 {
			first = r
		}
		return -1
	}, text)
	p.warnf("%s: %d hidden characters removed, the first is %U", where, count, first)
	return clean
}

func hasHidden(text string) bool { return strings.IndexFunc(text, hidden) >= 0 }

// hidden reports whether a text may not have r in it. Line breaks and tabs are
// welcome: descriptions have paragraphs.
func hidden(r rune) bool { return r != '\n' && r != '\t' && abi.Hidden(r) }

// anyHidden reports whether a key or a string within n hides characters.
func anyHidden(n *rawjson.Node) bool {
	return hasHidden(n.Str()) || slices.ContainsFunc(n.Items, anyHidden) ||
		slices.ContainsFunc(n.Members, func(m rawjson.Member) bool { return hasHidden(m.Name) || anyHidden(m.Value) })
}

// shown quotes text from outside for an error, in ASCII: letters that look alike
// do not.
func shown(text string) string { return strconv.QuoteToASCII(abi.Cut(text, maxShown)) }

func shownNode(n *rawjson.Node) string {
	if n.Is(rawjson.String) {
		return shown(n.Str())
	}
	return shown(n.String())
}
