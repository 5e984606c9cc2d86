package trackerrest

import (
	"encoding/json"
	"iter"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// Describe returns the description of the routes in OpenAPI 3.1.
func Describe(o Options) map[string]any {
	schemas := map[string]any{}
	paths := map[string]any{}
	for _, r := range Routes() {
		path, ok := paths[r.Path].(map[string]any)
		if !ok {
			path = map[string]any{}
			paths[r.Path] = path
		}
		path[strings.ToLower(r.Method)] = r.describe(schemas)
	}
	schemas["Error"] = map[string]any{
		"type": "object", "required": []string{"error"}, "properties": map[string]any{"error": schemaOf(typeOf[tracker.Error](), schemas, false)},
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": o.Title, "version": o.Version},
		"servers": []any{map[string]any{"url": o.Base}},
		"paths":   paths,
		"components": map[string]any{
			"schemas":         schemas,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
		},
		"security": []any{map[string]any{"token": []string{}}},
	}
}

func inPath(path string) (names []string) {
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
		names = append(names, m[1])
	}
	return names
}

func (r Route) describe(schemas map[string]any) map[string]any {
	op := map[string]any{
		"operationId": r.name, "summary": r.Summary, "x-scope": r.Scope, "responses": r.responses(schemas),
	}
	if len(r.Tools) > 0 {
		op["x-tools"] = r.Tools
	}
	if params := r.parameters(); len(params) > 0 {
		op["parameters"] = params
	}
	if r.body == nil {
		return op
	}
	content := map[string]any{"application/json": map[string]any{"schema": r.sent(schemas)}}
	if r.body == typeOf[tracker.UploadFile]() {
		content[octets] = map[string]any{}
	}
	op["requestBody"] = map[string]any{"required": len(r.required) > 0, "content": content}
	return op
}

// sent describes the body. A member may have other names, which are those of its type wherever
// that is sent; one that is required may stand under any of them.
func (r Route) sent(schemas map[string]any) map[string]any {
	schema := schemaOf(r.body, schemas, true)
	properties := schemas[schemaName(r.body)].(map[string]any)["properties"].(map[string]any)
	names := map[string][]any{}
	for _, alias := range slices.Sorted(maps.Keys(r.aliases)) {
		name := r.aliases[alias]
		of, ok := properties[name]
		if !ok {
			continue
		}
		properties[alias] = map[string]any{"description": "the same as " + name, "allOf": []any{of}}
		names[name] = append(names[name], map[string]any{"required": []string{alias}})
	}
	all := []any{schema}
	for _, name := range r.required {
		all = append(all, map[string]any{"anyOf": append([]any{map[string]any{"required": []string{name}}}, names[name]...)})
	}
	if len(all) == 1 {
		return schema
	}
	return map[string]any{"allOf": all}
}

func (r Route) parameters() (out []any) {
	for _, name := range inPath(r.Path) {
		out = append(out, map[string]any{"name": name, "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
	}
	for _, p := range r.query {
		out = append(out, map[string]any{"name": p.name, "in": "query", "description": p.about, "schema": p.schema})
		if p.alias != "" {
			out = append(out, map[string]any{"name": p.alias, "in": "query", "description": "the same as " + p.name, "schema": p.schema})
		}
	}
	header := func(name, about string) {
		out = append(out, map[string]any{"name": name, "in": "header", "description": about, "schema": map[string]any{"type": "string"}})
	}
	if f, ok := r.keyed(); ok && f {
		header("Idempotency-Key", "a repeated request with the same key is answered as the first one was")
	}
	if r.body == typeOf[tracker.UpdateTask]() {
		header("If-Match", "the ETag that the task must have")
	}
	return out
}

// keyed reports whether the body is one that an idempotency key makes harmless to repeat.
func (r Route) keyed() (keyed, ok bool) {
	if r.body == nil {
		return false, false
	}
	_, ok = r.body.FieldByName("IdempotencyKey")
	return ok, true
}

func (r Route) responses(schemas map[string]any) map[string]any {
	success := map[string]any{"description": "done"}
	if r.answer != nil {
		content := map[string]any{"application/json": map[string]any{"schema": schemaOf(r.answer, schemas, false)}}
		if r.answer == typeOf[tracker.FileOut]() {
			content[octets] = map[string]any{}
		}
		success["content"] = content
	}
	return map[string]any{
		strconv.Itoa(r.status): success,
		"default": map[string]any{
			"description": "refused",
			"content":     map[string]any{"application/json": map[string]any{"schema": ref("Error")}},
		},
	}
}

func ref(name string) map[string]any { return map[string]any{"$ref": "#/components/schemas/" + name} }

// A member is one of an object in JSON.
type member struct {
	name     string
	optional bool // it may be left out
	t        reflect.Type
}

// fieldsOf are the members of a struct, those of embedded ones among them.
func fieldsOf(t reflect.Type) iter.Seq[member] {
	return func(yield func(member) bool) {
		seen := map[string]bool{}
		for _, f := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" || seen[name] {
				continue
			}
			seen[name] = true
			if !yield(member{name, strings.Contains(options, "omit"), f.Type}) {
				return
			}
		}
	}
}

// enums have types that are words.
func enums() map[reflect.Type][]string {
	var statuses []string
	for _, s := range tracker.Statuses() {
		statuses = append(statuses, string(s))
	}
	return map[reflect.Type][]string{
		typeOf[tracker.Status]():   statuses,
		typeOf[tracker.Kind]():     {string(tracker.Human), string(tracker.Agent)},
		typeOf[tracker.Presence](): {string(tracker.Online), string(tracker.Offline)},
	}
}

// schemaOf describes a type. Structs with a name are put into schemas. In what is sent to a
// tracker nothing is required that its route does not require.
func schemaOf(t reflect.Type, schemas map[string]any, sent bool) map[string]any {
	if words, ok := enums()[t]; ok {
		return map[string]any{"type": "string", "enum": words}
	}
	switch t {
	case typeOf[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case typeOf[json.RawMessage](), typeOf[any]():
		return map[string]any{}
	case typeOf[[]byte](), typeOf[tracker.Base64]():
		return map[string]any{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return nullable(schemaOf(t.Elem(), schemas, sent))
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), schemas, sent)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), schemas, sent)}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Struct:
		return structSchema(t, schemas, sent)
	}
	return map[string]any{"type": "string"}
}

func nullable(schema map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
}

func structSchema(t reflect.Type, schemas map[string]any, sent bool) map[string]any {
	if f, ok := t.FieldByName("Value"); ok && strings.HasPrefix(t.Name(), "Field[") {
		return nullable(schemaOf(f.Type, schemas, sent))
	}
	name := schemaName(t)
	if _, ok := schemas[name]; ok {
		return ref(name)
	}
	properties, required := map[string]any{}, []string{}
	schemas[name] = nil // so that a type that holds itself ends
	for f := range fieldsOf(t) {
		properties[f.name] = schemaOf(f.t, schemas, sent)
		if !f.optional && !sent {
			required = append(required, f.name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if sent {
		schema["additionalProperties"] = false
	} else {
		schema["required"] = required
	}
	schemas[name] = schema
	return ref(name)
}

// schemaName makes TaskOutPage of Page[…/tracker.TaskOut].
func schemaName(t reflect.Type) string {
	name := t.Name()
	if i := strings.IndexByte(name, '['); i > 0 {
		inner := strings.TrimSuffix(name[i+1:], "]")
		return inner[strings.LastIndexByte(inner, '.')+1:] + name[:i]
	}
	if t == typeOf[tracker.Error]() {
		return "ErrorBody"
	}
	return name
}
