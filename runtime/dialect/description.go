package dialect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

// ParseDescription reads what [Guest.Describe] returned, or what the custom
// section hutch.manifest holds. The error is one line that names what is wrong.
//
// Either dialect writes {"tools":[...]}. The native one is strict: beside tools
// it knows requests and version, and anything else is an error. A v1 module
// (ListToolsResult of mcp.run and hyper-mcp v1) gives name, description and
// inputSchema; null is as good as absent there, and what it says besides is
// ignored.
func ParseDescription(k Kind, raw []byte) (tool.Description, error) {
	d, err := parseDescription(k, raw)
	if err != nil {
		return tool.Description{}, fmt.Errorf("description: %w", err)
	}
	return d, nil
}

func parseDescription(k Kind, raw []byte) (d tool.Description, err error) {
	if err := checkJSON(raw, MaxDescriptionBytes); err != nil {
		return d, err
	}
	f := objectFields(raw, "it", !k.strict(), &err)
	list := f.need("tools", "array")
	if err != nil {
		return d, err
	}
	tools := decoded[[]json.RawMessage](&f, "tools", list)
	switch {
	case len(tools) == 0:
		return d, fmt.Errorf("tools is empty; a module describes at least one")
	case len(tools) > MaxTools:
		return d, fmt.Errorf("%d tools, at most %d", len(tools), MaxTools)
	}
	if k.strict() {
		d.Version = f.text("version")
		d.Requests = decoded[tool.Requests](&f, "requests", f.get("requests", "object"))
		f.onlyKnows("tools", "requests", "version")
	}
	seen := map[string]int{}
	for i, t := range tools {
		spec := parseSpec(k, t, i+1, &err)
		if err != nil {
			return d, err
		}
		if first, ok := seen[spec.Name]; ok {
			return d, fmt.Errorf("tools %d and %d are both named %q", first, i+1, shown(spec.Name))
		}
		seen[spec.Name] = i + 1
		d.Tools = append(d.Tools, spec)
	}
	return d, err
}

// checkJSON bounds raw before anything reads it.
func checkJSON(raw []byte, most int) error {
	switch {
	case len(raw) == 0:
		return fmt.Errorf("nothing was written")
	case len(raw) > most:
		return fmt.Errorf("%d bytes, at most %d", len(raw), most)
	}
	return rawjson.Check(raw, rawjson.MaxDepth)
}

// onlyKnows fails on the first other member, in the order of their names.
func (f *fields) onlyKnows(names ...string) {
	var unknown []string
	for name := range f.members {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		where := ""
		if f.where != "it" {
			where = f.where + ": "
		}
		f.fail("%sunknown field %q", where, shown(slices.Min(unknown)))
	}
}

// shown is what stands in an error of a text that a module made up.
func shown(text string) string { return abi.OneLine(text, 100) }

func parseSpec(k Kind, raw json.RawMessage, n int, err *error) tool.Spec {
	f := objectFields(raw, fmt.Sprintf("tool %d", n), !k.strict(), err)
	s := tool.Spec{Name: f.needText("name")}
	f.where = fmt.Sprintf("tool %d (%q)", n, shown(s.Name))
	s.Description = f.text("description")
	s.InputSchema = f.need("inputSchema", "object")
	if !k.strict() {
		return s
	}
	s.Title = f.text("title")
	s.OutputSchema = f.get("outputSchema", "object")
	s.Aliases = decoded[map[string]map[string]string](&f, "aliases", f.get("aliases", "object"))
	s.Translations = parseTranslations(f.get("translations", "object"), f.where+": translations", err)
	if a := f.get("annotations", "object"); a != nil {
		s.Annotations = parseAnnotations(a, f.where+": annotations", err)
	}
	return s
}

// parseTranslations knows what a translation may have, so that a module that wants to say
// more learns that it is not read.
func parseTranslations(raw json.RawMessage, where string, err *error) map[string]tool.Translation {
	if raw == nil {
		return nil
	}
	all := map[string]tool.Translation{}
	f := objectFields(raw, where, false, err)
	for _, language := range slices.Sorted(maps.Keys(f.members)) {
		of := objectFields(f.members[language], where+": "+shown(language), false, err)
		of.onlyKnows("title", "description", "parameters")
		all[language] = tool.Translation{
			Title: of.text("title"), Description: of.text("description"),
			Parameters: decoded[map[string]string](&of, "parameters", of.get("parameters", "object")),
		}
	}
	return all
}

func parseAnnotations(raw json.RawMessage, where string, err *error) *tool.Annotations {
	f := objectFields(raw, where, false, err)
	return &tool.Annotations{
		Title:           f.text("title"),
		ReadOnlyHint:    f.flag("readOnlyHint"),
		DestructiveHint: f.flag("destructiveHint"),
		IdempotentHint:  f.flag("idempotentHint"),
		OpenWorldHint:   f.flag("openWorldHint"),
	}
}
