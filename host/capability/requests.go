package capability

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

// ParseRequests reads what a module asks for. The grammar is that of grant in a
// policy file; besides, each entry may have a reason, a name in a list may be
// written {"name": ..., "reason": ...}, and an entry that has nothing but a
// reason asks for whatever is granted. One for http may bound that by methods,
// max_request and max_response. The error is a [*PolicyError] without lines.
func ParseRequests(asked tool.Requests) (Grant, error) {
	var g Grant
	r := &reader{asks: true}
	if unknown := unknownKinds(asked); len(unknown) > 0 {
		r.bad(0, "", "asks for "+quoted(unknown), "known capabilities are "+strings.Join(kinds(), ", "))
	}
	for _, kind := range kinds() {
		raw, ok := asked[kind]
		if !ok {
			continue
		}
		n, err := rawjson.Parse(raw, maxDepth)
		if err != nil {
			r.bad(0, kind, abi.OneLine(err.Error(), 200), "")
			continue
		}
		r.grant(&node{kind: mapping, pairs: []pair{{key: kind, value: fromJSON(n)}}}, "", &g, false)
	}
	if err := r.err("requests"); err != nil {
		return Grant{}, err
	}
	return g, nil
}

func unknownKinds(asked tool.Requests) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(asked)), func(name string) bool { return slices.Contains(kinds(), name) })
}

// quoted lists names that a module made up: a few, each cut and on one line.
func quoted(unknown []string) string {
	const most, longest = 5, 40
	var out []string
	for _, name := range unknown[:min(len(unknown), most)] {
		out = append(out, strconv.QuoteToASCII(abi.Cut(name, longest)))
	}
	if rest := len(unknown) - most; rest > 0 {
		out = append(out, fmt.Sprintf("%d more", rest))
	}
	return strings.Join(out, ", ")
}

// summary says in a few words what g is about.
func (g Grant) summary() string {
	const most = 3
	var parts []string
	for _, kind := range g.Kinds() {
		about := g.about(kind)
		if rest := len(about) - most; rest > 0 {
			about = append(about[:most:most], fmt.Sprintf("%d more", rest))
		}
		parts = append(parts, strings.TrimSuffix(kind+" "+strings.Join(about, " "), " "))
	}
	return abi.OneLine(strings.Join(parts, ", "), 300)
}

// about returns what the entries of one kind are about, without those that do
// not say.
func (g Grant) about(kind string) (names []string) {
	switch kind {
	case kindHTTP:
		for _, r := range g.HTTP {
			names = append(names, r.Host)
		}
	case kindSecrets:
		for _, s := range g.Secrets {
			names = append(names, s.Name)
		}
	case kindTracker, kindConversation, kindBridge, kindTool:
		names = slices.Clone(*g.names(kind))
	case kindFS:
		for _, f := range g.FS {
			names = append(names, f.Path)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return slices.Compact(names)
}
