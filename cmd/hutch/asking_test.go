package main

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/worker"
)

// asking are the modules in guests/ that ask for something, with their tools, what
// they ask for, and the gated functions they link.
func asking() map[string]struct{ tools, asks, links []string } {
	return map[string]struct{ tools, asks, links []string }{
		"fetch":            {[]string{"fetch"}, []string{"http"}, []string{"http_request"}},
		"httpjson":         {[]string{"http_json"}, []string{"http"}, []string{"http_request"}},
		"notes":            {[]string{"note_add", "note_list", "note_get", "note_search", "note_remove"}, []string{"kv"}, []string{"kv_delete", "kv_get", "kv_set"}},
		"examples/weather": {[]string{"weather_now"}, []string{"http", "secrets"}, []string{"http_request"}},
		"examples/greet":   {[]string{"greet"}, nil, nil},
	}
}

// A module links, and so asks for, what its tools use and no more: a part of the SDK
// that nobody uses leaves no import behind.
func TestModulesThatAsk(t *testing.T) {
	bench := testBench(t)
	for folder, want := range asking() {
		t.Run(folder, func(t *testing.T) {
			src := exampleModule(t, filepath.Join(guestsFolder, folder))
			tools, m, err := bench.mount(t.Context(), src.name, src.body, registry.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := tools.Close(); err != nil {
				t.Error(err)
			}
			status := tool.Held
			if want.asks == nil {
				status = tool.Ready
			}
			if m.Status != status || !slices.Equal(namesOf(m), want.tools) || !slices.Equal(slices.Sorted(maps.Keys(m.Requests)), want.asks) {
				t.Errorf("%s with tools %q asks for %v; want %s, %q, %q; %s", m.Status, namesOf(m), m.Requests, status, want.tools, want.asks, m.Reason)
			}
			if warnings := toolWarnings(m); len(warnings) > 0 {
				t.Errorf("warnings: %q", warnings)
			}
			if links := gatedImports(t, bench, src.body); !slices.Equal(links, want.links) {
				t.Errorf("links %q, want %q", links, want.links)
			}
		})
	}
}

func gatedImports(t *testing.T, bench *workbench, body []byte) (names []string) {
	t.Helper()
	checked, err := bench.check(body)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range checked.Imports {
		if abi.Op(i.Name).Capability() != "" {
			names = append(names, i.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// What a tool asks its host reaches it out of the sandbox, and what the host says,
// the tool: results, large ones too, and refusals.
func TestModulesReachTheirHost(t *testing.T) {
	large := strings.Repeat("<p class=a>A line of a page, not a long one.", 45_000)
	kept := map[string]string{}
	host := func(_ context.Context, r abi.Request) abi.Response {
		var in struct{ URL, Key, Value string }
		if err := json.Unmarshal(r.Body, &in); err != nil {
			return abi.Refuse(abi.Invalid, err.Error())
		}
		switch {
		case r.Op == abi.OpHTTP && in.URL == "https://a.example/denied":
			return abi.Refuse(abi.Denied, "http_request: a.example is not granted: ask the operator")
		case r.Op == abi.OpHTTP:
			return answerWith(t, abi.HTTPResponse{Status: 200, URL: in.URL, Headers: map[string][]string{"Content-Type": {"text/html"}}, Body: large})
		case r.Op == abi.OpKVSet:
			kept[in.Key] = in.Value
			return answerWith(t, abi.KVStored{Stored: true, Version: 1})
		case in.Key != "":
			value, found := kept[in.Key]
			return answerWith(t, abi.KVValue{Found: found, Value: value, Version: int64(len(value))})
		}
		return answerWith(t, abi.KVKeys{})
	}
	bench := testBench(t)
	for _, c := range []struct{ folder, tool, args, want string }{
		{"fetch", "fetch", `{"url":"https://a.example/","most":100}`, `A line of a page, not a long one.\n\nA line`},
		{"fetch", "fetch", `{"url":"https://a.example/denied"}`, `{"content":[{"type":"text","text":"http_request: a.example is not granted: ask the operator"}],"isError":true}`},
		{"httpjson", "http_json", `{"url":"https://a.example/","method":"POST","body":{"a":1},"most":100}`, `"truncated":true`},
		{"notes", "note_add", `{"title":"a","text":"grüße"}`, `"structuredContent":{"id":1}`},
		{"notes", "note_get", `{"id":1}`, `"text":"grüße"`},
	} {
		src := exampleModule(t, filepath.Join(guestsFolder, c.folder))
		checked, err := bench.check(src.body)
		if err != nil {
			t.Fatal(err)
		}
		m := worker.Module{Name: src.name, Digest: digestOf(src.body), Limits: bench.cfg.Limits.Call,
			Bytes: func() ([]byte, error) { return checked.Stripped(), nil }}
		got, _, err := bench.pool.Call(t.Context(), m, abi.Invocation{Tool: c.tool, Arguments: json.RawMessage(c.args), Limits: bench.cfg.Limits.Call, Host: host})
		if err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%s %s: got %.300s, %v, want %s", c.tool, c.args, got, err, c.want)
		}
	}
}

func answerWith(t *testing.T, v any) abi.Response {
	body, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return abi.Response{Body: body}
}
