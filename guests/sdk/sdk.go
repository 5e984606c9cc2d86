// Package sdk is what a tool author imports: typed tools, host calls, and the
// exports that a host looks for. Its neighbour sdktest runs the same tools in
// plain go test.
//
// A tool is a function from a struct to a struct or a string, and a definition:
//
//	type greeting struct {
//		Name string `json:"name" doc:"Who is greeted."`
//	}
//
//	func greet(_ *sdk.Call, in greeting) (string, error) {
//		return "Hello, " + in.Name + "!", nil
//	}
//
//	var module = sdk.Serve(sdk.Module{Version: "1.0.0", Tools: []sdk.Tool{
//		sdk.Define(sdk.Spec{Name: "greet", Description: "Greets someone."}, greet),
//	}})
//
//	func main() { module.Main() }
//
// # Why a package variable
//
// A tool is built as a Wasm reactor (go build -buildmode=c-shared). A reactor's
// main never runs: the host calls _initialize, which initialises the packages,
// and then the exports. So a module must be handed over while its package is
// initialised, and a variable is the one form of that which also gives tests
// something to hold.
//
// # Schemas
//
// Input and output schemas come from the Go types, in a form that every known
// host takes: objects with properties and required, nothing but one type for
// each value, no references. Struct tags say the rest:
//
//	json:"name,omitempty"   the property's name; omitempty or omitzero: optional
//	doc:"Who is greeted."   its description
//	enum:"plain,loud"       the allowed strings, of a string or of a []string
//	alias:"soft=plain"      other spellings of these, as other=value,...
//	default:"plain"         optional, and what an absent property becomes
//	min:"1" max:"10"        bounds: of a number, of a string's length in
//	                        characters, of the number of items in a slice
//
// Pointers are optional fields too; in an output they need omitempty. A field
// of type any or json.RawMessage has no single JSON type and is allowed in
// outputs alone; map[string]any is an object with any content. A time.Time is
// RFC 3339 text, and so is text what has a MarshalText. A time.Duration is
// refused: say seconds in a number, or take ISO 8601 text. Types that contain
// themselves are refused, as are types with a MarshalJSON of their own. A [Ref] is the one
// kind with two types, text and a whole number, which a few hosts do not take.
//
// Arguments are checked, and then decoded by encoding/json, exactly: integers
// keep every digit, 5.0 is the integer 5, nothing is rounded, and numbers inside
// an any are json.Number. Nil slices and maps of a result are written as empty
// ones, so that it always fits its schema; inside an any they are null.
//
// A host resolves the other spellings of a value before it checks arguments, also in
// other cases and with - or a space for _; the schema has the values alone.
//
// # Reaching out
//
// A tool reaches the network and keeps values through the packages fetch and kv
// below this one. What it uses, its module declares in [Module.Requests], and an
// operator grants. An operation that is refused is an error to return or to test:
// see [Refusal].
//
// # Size
//
// The example greet is 3.5 MB, most of it Go's runtime and encoding/json.
package sdk

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/tool"
)

// Module is a set of tools in one .wasm file.
type Module struct {
	// Version is shown to people; hutch does not order versions.
	Version string
	// Requests is what its tools reach; nothing for tools that only compute.
	Requests Requests
	// Tools are listed in this order. At least one.
	Tools []Tool
}

// Spec is what a tool says about itself besides its types.
//
// The four flags become MCP's annotations. A module without [Module.Requests]
// cannot touch anything, so its tools are read-only whatever the flags say;
// otherwise the zero value is the careful answer.
type Spec struct {
	// Name matches ^[a-zA-Z][a-zA-Z0-9_-]{0,47}$.
	Name string
	// Title is for people; optional.
	Title string
	// Description is what a model decides by: when to use the tool, what comes
	// back, what the limits are. 1 to 1,000 characters.
	Description string

	// Translations are the texts above, and those of the fields of the input, in other
	// languages: by language such as ru, at most 16. A host shows those of the language that
	// an operator set for the module, under lang.
	Translations map[string]Translation

	ReadOnly    bool // changes nothing anywhere
	Additive    bool // only adds: overwrites and deletes nothing
	Idempotent  bool // the same call twice does no more than once
	ClosedWorld bool // deals only with what the caller handed it
}

// Tool is one defined tool. Make it with [Define].
type Tool struct {
	spec    Spec
	in, out *shape // out is nil if the output is text or a whole Result
	run     func(*Call, any) (any, error)
	err     error // what is wrong with the definition; Describe reports it
}

// Define makes a tool from a function. In is a struct. Out is a struct, a
// map with string keys, a slice, a [Said] of one of these, a string, or a [Result].
//
// A slice has no output schema: clients drop a tool whose schema has another root than an
// object. A struct, map or slice is sent as structured content, and as text: what its method
// Text() string returns if it has one, else the same JSON. Many hosts show a
// model only one of the two, so Text must not say more than the fields do.
//
// An error that the function returns becomes a result that tells the model so;
// write it for a reader who can try again. A panic becomes such a result too.
func Define[In, Out any](spec Spec, run func(*Call, In) (Out, error)) Tool {
	return define(spec, reflect.TypeFor[In](), reflect.TypeFor[Out](),
		func(c *Call, in any) (any, error) { return run(c, *in.(*In)) })
}

// define is Define without type parameters, so that it is compiled once.
func define(spec Spec, in, out reflect.Type, run func(*Call, any) (any, error)) Tool {
	t := Tool{spec: spec, run: run}
	if t.err = checkSpec(spec); t.err != nil {
		return t
	}
	if t.in, t.err = inputShape(in); t.err != nil {
		return t
	}
	if t.err = t.checkTranslations(); t.err != nil {
		return t
	}
	t.out, t.err = outputShape(out)
	return t
}

// inputShape returns the shape of a struct that arguments are decoded into.
func inputShape(t reflect.Type) (*shape, error) {
	s, err := shapeOf(t, input)
	if err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	if s.kind != object {
		return nil, fmt.Errorf("input: is %s, must be a struct", t)
	}
	return s, nil
}

// outputShape returns nil for the two types that have no schema.
func outputShape(t reflect.Type) (*shape, error) {
	if t.Kind() == reflect.String || t == reflect.TypeFor[Result]() {
		return nil, nil
	}
	if t.Implements(reflect.TypeFor[saying]()) {
		t = t.Field(0).Type
	}
	s, err := shapeOf(t, output)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	if s.kind != object && s.kind != dict && s.kind != list {
		return nil, fmt.Errorf("output: is %s, must be a struct, a map, a slice, a string or an sdk.Result", t)
	}
	return s, nil
}

// checkSpec holds a definition to what every host accepts.
func checkSpec(s Spec) error {
	if !validName(s.Name) {
		return fmt.Errorf("name is %s, must be 1 to 48 of letters, digits, _ and -, a letter first", quote(s.Name))
	}
	if n := utf8.RuneCountInString(s.Description); n == 0 || n > 1000 {
		return fmt.Errorf("description has %d characters, must have 1 to 1000", n)
	}
	return nil
}

// checkTranslations holds translations to what a host takes.
func (t Tool) checkTranslations() error {
	if n := len(t.spec.Translations); n > 16 {
		return fmt.Errorf("translations are in %d languages, at most 16", n)
	}
	for language, in := range t.spec.Translations {
		if utf8.RuneCountInString(in.Title) > 200 || utf8.RuneCountInString(in.Description) > 1000 {
			return fmt.Errorf("translation %s is too long: a title has at most 200 characters, a description 1000", quote(language))
		}
		for name, doc := range in.Parameters {
			if !t.in.has(name) {
				return fmt.Errorf("translation %s: unknown property %s; %s", quote(language), quote(name), t.in.known())
			}
			if utf8.RuneCountInString(doc) > 1000 {
				return fmt.Errorf("translation %s: property %s has over 1000 characters", quote(language), quote(name))
			}
		}
	}
	return nil
}

func validName(name string) bool {
	return len(name) <= 48 && validKey(name) && isLetter(name[0]) && !strings.Contains(name, ".")
}

// annotations say all four hints, since a host takes a missing one for the worst.
// Those of a pure tool, one whose module requests nothing, do not depend on its
// flags.
func (t Tool) annotations(pure bool) *tool.Annotations {
	if pure {
		var unsaid *tool.Annotations
		return unsaid.Pure()
	}
	destructive := !t.spec.ReadOnly && !t.spec.Additive
	idempotent := t.spec.ReadOnly || t.spec.Idempotent
	openWorld := !t.spec.ClosedWorld
	return &tool.Annotations{
		ReadOnlyHint: &t.spec.ReadOnly, DestructiveHint: &destructive, IdempotentHint: &idempotent, OpenWorldHint: &openWorld,
	}
}

// aliases are those of the parameters, nil if none has any.
func (t Tool) aliases() map[string]map[string]string {
	var all map[string]map[string]string
	for _, f := range t.in.fields {
		if s := f.shape.strings(); s.alias != nil {
			if all == nil {
				all = map[string]map[string]string{}
			}
			all[f.name] = s.alias
		}
	}
	return all
}

// describe returns the tool as a host lists it.
func (t Tool) describe(pure bool) (s tool.Spec, err error) {
	if t.err != nil {
		return s, fmt.Errorf("tool %s: %w", t.spec.Name, t.err)
	}
	s = tool.Spec{Name: t.spec.Name, Title: t.spec.Title, Description: t.spec.Description, Annotations: t.annotations(pure), Aliases: t.aliases(), Translations: t.spec.Translations}
	if s.InputSchema, err = encode(t.in.schema("")); err == nil && t.out != nil && t.out.kind != list {
		s.OutputSchema, err = encode(t.out.schema(""))
	}
	return s, err
}
