package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
)

// An Offer is what a model may call in a run. Its Functions are sorted by name: as long
// as they stay the same, so does the beginning of each request, which providers cache.
type Offer struct {
	Functions []chat.Function
	server    map[string]tool.Spec
	client    map[string]bool
}

// A Warning is what went otherwise than the client asked for, in a code and a text for
// people.
type Warning struct{ Code, Message string }

// mostName is the longest name of a tool that models take.
const mostName = 64

// NewOffer brings together what the server and the client have. Functions of the client
// that no model would take are left out with a warning, as the whole request would be
// refused for one.
func NewOffer(specs []tool.Spec, functions []event.Tool) (Offer, []Warning) {
	o := Offer{server: map[string]tool.Spec{}, client: map[string]bool{}}
	for _, s := range specs {
		o.server[s.Name] = s
		o.Functions = append(o.Functions, chat.Function(tool.ToOpenAI(s).Function))
	}
	var warnings []Warning
	for _, f := range functions {
		if w := o.refusal(f); w != (Warning{}) {
			warnings = append(warnings, w)
			continue
		}
		o.client[f.Name] = true
		spec := tool.Spec{Name: f.Name, Description: f.Description, InputSchema: f.Parameters}
		o.Functions = append(o.Functions, chat.Function(tool.ToOpenAI(spec).Function))
	}
	slices.SortFunc(o.Functions, func(a, b chat.Function) int { return strings.Compare(a.Name, b.Name) })
	return o, warnings
}

// refusal says why a tool of the client is not offered; the zero one that it is.
func (o *Offer) refusal(f event.Tool) Warning {
	_, taken := o.server[f.Name]
	switch {
	case taken:
		return Warning{"tool_name_taken", fmt.Sprintf("the server has a tool %s: the client's is not offered to the model", Quoted(f.Name))}
	case o.client[f.Name]:
		return Warning{"tool_name_twice", fmt.Sprintf("the client has two tools %s: the second is not offered to the model", Quoted(f.Name))}
	case !isName(f.Name):
		return Warning{"tool_name", fmt.Sprintf("the client's tool %s is not offered to the model: names have 1 to %d letters, digits, _ and -", Quoted(f.Name), mostName)}
	case len(f.Parameters) > 0 && !IsObject(f.Parameters):
		return Warning{"tool_parameters", fmt.Sprintf("the client's tool %s is not offered to the model: its parameters are no JSON object", Quoted(f.Name))}
	}
	return Warning{}
}

func isName(s string) bool {
	other := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
	}
	return s != "" && len(s) <= mostName && !strings.ContainsFunc(s, other)
}

// IsObject reports whether raw is a JSON object.
func IsObject(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}

// ReadsOnly reports whether a tool says that it only reads. That decides about the order
// of calls, and about nothing else: it is the tool's own word.
func (o *Offer) ReadsOnly(name string) bool {
	a := o.server[name].Annotations
	return a != nil && a.ReadOnlyHint != nil && *a.ReadOnlyHint
}

// IsClients reports whether a tool runs in the client.
func (o *Offer) IsClients(name string) bool { return o.client[name] }
