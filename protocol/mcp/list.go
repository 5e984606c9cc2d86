package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

// A catalogue keeps each tool in go-sdk's form, so that a tool which did not
// change is one and the same pointer.
type catalogue struct {
	mu      sync.Mutex
	entries map[string]entry

	told map[string]*sdk.Tool // what go-sdk knows; watchTools alone uses it
	many int                  // the last of manyTools that was warned of
}

type entry struct {
	spec tool.Spec
	tool *sdk.Tool // nil if go-sdk does not take it
	err  error
}

// get returns the tool for spec, and whether spec was seen before.
func (c *catalogue) get(spec tool.Spec) (e entry, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[spec.Name]; ok && reflect.DeepEqual(e.spec, spec) {
		return e, true
	}
	e = entry{spec: spec}
	e.tool, e.err = newTool(spec)
	if c.entries == nil {
		c.entries = map[string]entry{}
	}
	c.entries[spec.Name] = e
	return e, false
}

// keep forgets every tool that is not in specs.
func (c *catalogue) keep(specs []tool.Spec) {
	names := make(map[string]bool, len(specs))
	for _, spec := range specs {
		names[spec.Name] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.entries {
		if !names[name] {
			delete(c.entries, name)
		}
	}
}

// newTool returns spec as go-sdk lists it, schemas byte for byte. It refuses
// what go-sdk panics on, and hosts would drop a whole list for: a schema that
// is no object, or a bad x-mcp-header.
func newTool(spec tool.Spec) (t *sdk.Tool, err error) {
	spec = tool.ToMCP(spec)
	t = &sdk.Tool{
		Name:        spec.Name,
		Title:       spec.Title,
		Description: spec.Description,
		InputSchema: spec.InputSchema,
		Annotations: annotations(spec),
	}
	if len(spec.OutputSchema) > 0 {
		t.OutputSchema = spec.OutputSchema
	}
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("%v", p)
		}
	}()
	for _, raw := range []json.RawMessage{spec.InputSchema, spec.OutputSchema} {
		if len(raw) > 0 {
			if err := rawjson.Check(raw, rawjson.MaxDepth); err != nil {
				return nil, err
			}
		}
	}
	if spec.Name == "" {
		return nil, errors.New("a tool without a name")
	}
	sdk.NewServer(&sdk.Implementation{}, nil).AddTool(t, nil)
	return t, nil
}

// annotations says every hint, because hosts take an unsaid one as they like:
// what the tool leaves open gets the default of the specification.
func annotations(spec tool.Spec) *sdk.ToolAnnotations {
	yes := true
	a := &sdk.ToolAnnotations{Title: spec.Title, DestructiveHint: &yes, OpenWorldHint: &yes}
	said := spec.Annotations
	if said == nil {
		return a
	}
	if said.Title != "" {
		a.Title = said.Title
	}
	if said.ReadOnlyHint != nil {
		a.ReadOnlyHint = *said.ReadOnlyHint
	}
	if said.IdempotentHint != nil {
		a.IdempotentHint = *said.IdempotentHint
	}
	if said.DestructiveHint != nil {
		a.DestructiveHint = said.DestructiveHint
	}
	if said.OpenWorldHint != nil {
		a.OpenWorldHint = said.OpenWorldHint
	}
	return a
}

// listTools answers tools/list: everything on one page, because many hosts
// never ask for a second one.
func (s *Server) listTools(ctx context.Context, req *sdk.ListToolsRequest) (sdk.Result, error) {
	if req.Params != nil && req.Params.Cursor != "" {
		return nil, rpcError(codeInvalidParams, "unknown cursor: the whole list is on one page, ask without a cursor")
	}
	modern := isModern(req.ProtocolVersion())
	list := &sdk.ListToolsResult{Tools: []*sdk.Tool{}, Cacheable: cacheable()}
	for _, spec := range s.tools.List(s.caller(ctx, req.Session)) {
		e, _ := s.list.get(spec)
		if e.tool == nil {
			continue
		}
		list.Tools = append(list.Tools, forEra(e.tool, modern))
	}
	return list, nil
}

// forEra says an output schema so that an older client, which rejects the whole list for
// one that is no object's, can use it: what is certain to be no object is wrapped, as
// results are, and what might be one has no schema.
func forEra(t *sdk.Tool, modern bool) *sdk.Tool {
	raw, ok := t.OutputSchema.(json.RawMessage)
	if modern || !ok {
		return t
	}
	var root struct {
		Type json.RawMessage `json:"type"`
	}
	if err := json.Unmarshal(raw, &root); err == nil && string(root.Type) == `"object"` {
		return t
	}
	old := *t
	old.OutputSchema = nil
	if schema := wrappedSchema(raw, root.Type); schema != nil {
		old.OutputSchema = schema
	}
	return &old
}

// wrappedSchema is the schema of what fits raw once it was [wrapped], or nil: references
// count from the root of a schema, and would lead elsewhere.
func wrappedSchema(raw, kind json.RawMessage) json.RawMessage {
	switch string(kind) {
	case `"array"`, `"string"`, `"number"`, `"integer"`, `"boolean"`, `"null"`:
	default:
		return nil
	}
	for _, word := range []string{`"$ref"`, `"$dynamicRef"`, `"$recursiveRef"`, `"$id"`, `"$schema"`} {
		if bytes.Contains(raw, []byte(word)) {
			return nil
		}
	}
	return slices.Concat([]byte(`{"type":"object","properties":{"result":`), raw, []byte(`},"required":["result"]}`))
}

// changed is what Tools calls.
func (s *Server) changed() {
	select {
	case s.dirty <- struct{}{}:
	default: // the change is told together with an earlier one
	}
}

// watchTools tells hosts of changes, many close together as one, until the
// server ends.
func (s *Server) watchTools() {
	for {
		select {
		case <-s.life.Done():
			return
		case <-s.dirty:
		}
		if !s.settle() {
			return
		}
		s.sync()
	}
}

// settle waits until nothing changed for a while, but not for ever. It returns
// false if the server ended.
func (s *Server) settle() bool {
	latest := time.NewTimer(10 * s.o.Quiet)
	defer latest.Stop()
	for {
		quiet := time.NewTimer(s.o.Quiet)
		select {
		case <-s.dirty:
			quiet.Stop()
			continue
		case <-quiet.C:
			return true
		case <-latest.C:
			quiet.Stop()
			return true
		case <-s.life.Done():
			quiet.Stop()
			return false
		}
	}
}

// sync makes go-sdk's tools those of the list, touching only what differs: it
// tells hosts of a change for every tool that is touched, and checks the
// headers that belong to a tool's arguments.
func (s *Server) sync() {
	defer s.recovered("list tools")
	specs := s.tools.List(tool.Caller{Principal: local, Agent: s.o.Agent, Face: face})
	now := make(map[string]*sdk.Tool, len(specs))
	for _, spec := range specs {
		e, known := s.list.get(spec)
		if e.err != nil && !known {
			s.o.Logger.Warn("mcp: tool left out", "tool", abi.Cut(spec.Name, maxShownName), "error", e.err)
		}
		if e.tool != nil {
			now[spec.Name] = e.tool
		}
	}
	var gone []string
	for name := range s.list.told {
		if now[name] == nil {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		s.sdk.RemoveTools(gone...)
	}
	for name, t := range now {
		if s.list.told[name] != t {
			s.sdk.AddTool(t, intercepted)
		}
	}
	s.list.told = now
	s.list.keep(specs)
	s.tellMany(len(now))
}

// Numbers of tools beyond which hosts drop some: the strictest one, then nearly all.
const (
	manyForSome = 40
	manyForAll  = 128
)

// tellMany tells once when a number is passed. What comes with hutch is more than the first
// of them, so that one is no warning.
func (s *Server) tellMany(n int) {
	passed, level := 0, slog.LevelInfo
	switch {
	case n > manyForAll:
		passed, level = manyForAll, slog.LevelWarn
	case n > manyForSome:
		passed = manyForSome
	}
	if passed > s.list.many {
		s.o.Logger.Log(context.Background(), level, "mcp: some hosts show no more tools than that and drop the rest", "tools", n, "shown", passed)
	}
	s.list.many = passed
}

// intercepted stands for a tool in go-sdk, which receive never lets a call
// reach.
func intercepted(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return nil, internalError("")
}
