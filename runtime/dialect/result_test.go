package dialect

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

func TestParseResult(t *testing.T) {
	size := int64(5)
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	content := func(c ...tool.Content) tool.Result { return tool.Result{Content: c} }
	tests := []struct {
		name string
		kind Kind // empty: both
		raw  string
		want tool.Result
	}{
		{"text", "", `{"content":[{"type":"text","text":""},{"type":"text","text":"a"}]}`, content(tool.Content{Type: "text"}, tool.Content{Type: "text", Text: "a"})},
		{"error", "", `{"content":[],"isError":true}`, tool.Result{Content: []tool.Content{}, IsError: true}},
		{"image", "", `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"priority":1},"_meta":{"a":1}}]}`,
			content(tool.Content{Type: "image", Data: "aGk=", MIMEType: "image/png", Annotations: raw(`{"priority":1}`), Meta: raw(`{"a":1}`)})},
		{"structured", "", `{"structuredContent":{"n":9007199254740993},"_meta":{"b":2}}`,
			tool.Result{Content: []tool.Content{}, Structured: raw(`{"n":9007199254740993}`), Meta: raw(`{"b":2}`)}},
		{"structured list", "", `{"content":[],"structuredContent":[1]}`, tool.Result{Content: []tool.Content{}, Structured: raw(`[1]`)}},
		{"resource", "", `{"content":[{"type":"resource","resource":{"uri":"a:b","blob":""}}]}`,
			content(tool.Content{Type: "resource", Resource: raw(`{"uri":"a:b","blob":""}`)})},
		{"link", "", `{"content":[{"type":"resource_link","uri":"a:b","name":"n","size":5,"description":"d"}]}`,
			content(tool.Content{Type: "resource_link", URI: "a:b", Name: "n", Size: &size, Description: "d"})},
		{"nulls", V1, `{"content":[{"type":"text","text":"a","data":null,"mimeType":null,"annotations":null}],"isError":null}`,
			content(tool.Content{Type: "text", Text: "a"})},
		{"nothing", V1, `{}`, content()},
		{"no content", V1, `{"content":null}`, content()},
		{"flat resource", V1, `{"content":[{"type":"resource","uri":"a:b","text":"t","data":"aGk=","mimeType":"text/plain"}]}`,
			content(tool.Content{Type: "resource", Resource: raw(`{"uri":"a:b","mimeType":"text/plain","text":"t"}`)})},
		{"flat binary resource", V1, `{"content":[{"type":"resource","uri":"a:b","data":"aGk="}]}`,
			content(tool.Content{Type: "resource", Resource: raw(`{"uri":"a:b","blob":"aGk="}`)})},
		{"resource without uri", V1, `{"content":[{"type":"resource","text":"t"}]}`, content(tool.Content{Type: "text", Text: "t"})},
		{"binary resource without uri", V1, `{"content":[{"type":"resource","data":"aGk="}]}`, content(tool.Content{Type: "text", Text: "aGk="})},
		{"resource with uri only", V1, `{"content":[{"type":"resource","uri":"a:b"}]}`, content(tool.Content{Type: "text", Text: "a:b"})},
	}
	for _, tt := range tests {
		for _, kind := range []Kind{Hutch, V1} {
			if tt.kind != "" && tt.kind != kind {
				continue
			}
			if tt.want.Content == nil {
				tt.want.Content = []tool.Content{}
			}
			if got, err := ParseResult(kind, []byte(tt.raw)); err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%s, %s: %+v, %v", kind, tt.name, got, err)
			}
		}
	}
}

func TestParseResultErrors(t *testing.T) {
	block := func(s string) string { return `{"content":[{"type":"text","text":"a"},` + s + `]}` }
	tests := []struct{ name, raw, native, v1 string }{
		{"empty", "", "nothing was written", ""},
		{"E11 deep", strings.Repeat("[", 10001), "json: offset 64", "skip"},
		{"E11 a key twice", `{"content":[],"content":[]}`, `json: offset 14`, ""},
		{"E10 invalid UTF-8", "{\"content\":[{\"type\":\"text\",\"text\":\"\xff\xfe\"}]}", "json: offset 35", ""},
		{"no object", `"text"`, "it is a string, want an object", ""},
		{"nothing", `{}`, "it: content is missing", "ok"},
		{"null", `{"content":null}`, "it: content is null, want an array", "ok"},
		{"content is a string", `{"content":"a"}`, "it: content is a string, want an array", ""},
		{"isError is a string", `{"content":[],"isError":"true"}`, "it: isError is a string, want a boolean", ""},
		{"block is a string", block(`"a"`), "content 2 is a string, want an object", ""},
		{"no type", block(`{"text":"a"}`), "content 2: type is missing", ""},
		{"unknown type", block(`{"type":"video"}`), `content 2: type is "video", want text, image, audio, resource or resource_link`, ""},
		{"no text", block(`{"type":"text"}`), "content 2: text is missing", ""},
		{"text is null", block(`{"type":"text","text":null}`), "content 2: text is null, want a string", "content 2: text is missing"},
		{"no data", block(`{"type":"image","mimeType":"image/png"}`), "content 2: data is missing", ""},
		{"no base64", block(`{"type":"audio","data":"a-_b","mimeType":"audio/wav"}`), "content 2: data is not base64", ""},
		{"base64 in lines", block(`{"type":"image","data":"aG\nk=","mimeType":"image/png"}`), "content 2: data is not base64", ""},
		{"base64 cut off", block(`{"type":"image","data":"aGk","mimeType":"image/png"}`), "content 2: data is not base64", ""},
		{"no media type", block(`{"type":"image","data":"aGk="}`), "content 2: mimeType is missing", ""},
		{"no resource", block(`{"type":"resource"}`), "content 2: resource is missing", "ok"},
		{"resource without uri", block(`{"type":"resource","resource":{"text":"a"}}`), "content 2: resource: uri is missing", ""},
		{"empty resource", block(`{"type":"resource","resource":{"uri":"a:b"}}`), "content 2: resource: neither text nor blob", ""},
		{"resource blob", block(`{"type":"resource","resource":{"uri":"a:b","blob":"%"}}`), "content 2: resource: blob is not base64", ""},
		{"link without name", block(`{"type":"resource_link","uri":"a:b"}`), "content 2: name is missing", ""},
		{"link size", block(`{"type":"resource_link","uri":"a:b","name":"n","size":1.5}`), "", ""},
	}
	for _, tt := range tests {
		if tt.v1 == "" {
			tt.v1 = tt.native
		}
		for kind, want := range map[Kind]string{Hutch: tt.native, V1: tt.v1} {
			_, err := ParseResult(kind, []byte(tt.raw))
			switch {
			case want == "ok" && err != nil, want != "ok" && err == nil:
				t.Errorf("%s, %s: %v", kind, tt.name, err)
			case want != "ok" && want != "skip" && !strings.HasPrefix(err.Error(), "result: "+want):
				t.Errorf("%s, %s: %v\nwant result: %s", kind, tt.name, err, want)
			}
		}
	}
}

func FuzzParseResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"aGk=","mimeType":"image/png"}],"isError":true}`), true)
	f.Add([]byte(`{"content":[{"type":"resource","uri":"a:b","text":"t","data":null}],"structuredContent":{"a":1}}`), false)
	f.Add([]byte(`{"content":[{"type":"resource_link","uri":"a:b","name":"n","size":5}]}`), true)
	f.Fuzz(func(t *testing.T, raw []byte, native bool) {
		kind := V1
		if native {
			kind = Hutch
		}
		r, err := ParseResult(kind, raw)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 2000 {
				t.Errorf("error %q", err)
			}
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(again) || r.Content == nil {
			t.Errorf("%s reads as %s", raw, again)
		}
	})
}
