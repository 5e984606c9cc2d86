package llm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/llm"
	"github.com/hutch-run/hutch/runtime/llm/llmtest"
)

// sent returns the body that goes out for a request.
func sent(t *testing.T, o llm.OpenAIOptions, r chat.Request) map[string]json.RawMessage {
	t.Helper()
	m, server := against(t, o, saying("hi"))
	if got := llmtest.Take(t, m.Stream(t.Context(), r)); got.Err != nil {
		t.Fatal(got.Err)
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(server.Requests()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func data(mime, value string) *chat.Source {
	return &chat.Source{Type: "data", MimeType: mime, Value: value}
}

func TestMessagesOnTheWire(t *testing.T) {
	call := chat.ToolCall{ID: "c1", Type: "function", Function: chat.FunctionCall{Name: "f", Arguments: `{"a": 1}`}}
	broken, empty := call, call
	broken.Function.Arguments, empty.Function.Arguments = `{"a": <`, ""
	all := []string{"image", "audio", "document"}
	text := chat.Part{Type: "text", Text: "see"}
	user := func(p ...chat.Part) chat.Message { return chat.Message{Role: chat.User, Content: chat.Parts(p...)} }
	left := func(what, why string) string {
		return fmt.Sprintf(`{"content":[{"text":"see","type":"text"},{"text":"[%s was left out: %s]","type":"text"}],"role":"user"}`, what, why)
	}
	for name, tt := range map[string]struct {
		o    llm.OpenAIOptions
		m    chat.Message
		want string // empty: it is not sent
	}{
		"developer":              {llm.OpenAIOptions{}, chat.Message{Role: chat.Developer, Content: chat.Text("be kind")}, `{"content":"be kind","role":"system"}`},
		"developer, taken":       {llm.OpenAIOptions{Developer: true}, chat.Message{Role: chat.Developer, Content: chat.Text("be kind")}, `{"content":"be kind","role":"developer"}`},
		"system":                 {llm.OpenAIOptions{Developer: true}, chat.Message{Role: chat.System, Content: chat.Text("be kind")}, `{"content":"be kind","role":"system"}`},
		"user, named":            {llm.OpenAIOptions{}, chat.Message{Role: chat.User, Name: "ann", Content: chat.Text("<hi>")}, `{"content":"<hi>","name":"ann","role":"user"}`},
		"user, oddly named":      {llm.OpenAIOptions{}, chat.Message{Role: chat.User, Name: "Ann B.", Content: chat.Text("hi")}, `{"content":"hi","role":"user"}`},
		"assistant":              {llm.OpenAIOptions{}, chat.Message{Role: chat.Assistant, Content: chat.Text("yes"), Incomplete: true}, `{"content":"yes","role":"assistant"}`},
		"assistant, calling":     {llm.OpenAIOptions{}, chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{call}}, `{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\": 1}","name":"f"},"id":"c1","type":"function"}]}`},
		"assistant, wrong JSON":  {llm.OpenAIOptions{}, chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{broken}}, `{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"malformed\":\"{\\\"a\\\": <\"}","name":"f"},"id":"c1","type":"function"}]}`},
		"assistant, no JSON":     {llm.OpenAIOptions{}, chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{empty}}, `{"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"f"},"id":"c1","type":"function"}]}`},
		"assistant, silent":      {llm.OpenAIOptions{}, chat.Message{Role: chat.Assistant}, ``},
		"reasoning":              {llm.OpenAIOptions{}, chat.Message{Role: chat.Reasoning, Content: chat.Text("hm")}, ``},
		"tool":                   {llm.OpenAIOptions{}, chat.Message{Role: chat.Tool, ToolCallID: "c1", Content: chat.Text(`{"n":2}`)}, `{"content":"{\"n\":2}","role":"tool","tool_call_id":"c1"}`},
		"tool in the client":     {llm.OpenAIOptions{}, chat.Message{Role: chat.Tool, ToolCallID: "c1", Error: "closed"}, `{"content":"{\"error\":{\"code\":\"client_error\",\"message\":\"closed\"}}","role":"tool","tool_call_id":"c1"}`},
		"tool with an image":     {llm.OpenAIOptions{}, chat.Message{Role: chat.Tool, ToolCallID: "c1", Content: chat.Parts(text, chat.Part{Type: "image"})}, `{"content":"see\n[image was left out: results are text]","role":"tool","tool_call_id":"c1"}`},
		"parts of text":          {llm.OpenAIOptions{}, user(text, text), `{"content":"see\nsee","role":"user"}`},
		"image, URL":             {llm.OpenAIOptions{}, user(text, chat.Part{Type: "image", Source: &chat.Source{Type: "url", Value: "https://example.org/x.png"}}), `{"content":[{"text":"see","type":"text"},{"image_url":{"url":"https://example.org/x.png"},"type":"image_url"}],"role":"user"}`},
		"image, data":            {llm.OpenAIOptions{}, user(text, chat.Part{Type: "image", Source: data("image/png", "AAAA")}), `{"content":[{"text":"see","type":"text"},{"image_url":{"url":"data:image/png;base64,AAAA"},"type":"image_url"}],"role":"user"}`},
		"image, not taken":       {llm.OpenAIOptions{Parts: []string{}}, user(text, chat.Part{Type: "image", Source: data("image/png", "AAAA")}), left("image", "the model does not take it")},
		"image, no image":        {llm.OpenAIOptions{}, user(text, chat.Part{Type: "image", Source: data("text/html", "AAAA")}), left("image", "its source is of a kind that the model does not take")},
		"image, wrong type":      {llm.OpenAIOptions{}, user(text, chat.Part{Type: "image", Source: data("image/png;x,", "AAAA")}), left("image", "its type is not known")},
		"image, file URL":        {llm.OpenAIOptions{}, user(text, chat.Part{Type: "image", Source: &chat.Source{Type: "url", Value: "file:///etc/passwd"}}), left("image", "its source is of a kind that the model does not take")},
		"image, user in the URL": {llm.OpenAIOptions{}, user(text, chat.Part{Type: "image", Source: &chat.Source{Type: "url", Value: "https://a:b@example.org/"}}), left("image", "its source is of a kind that the model does not take")},
		"image, handle":          {llm.OpenAIOptions{}, user(text, chat.Part{Type: "image", Source: &chat.Source{Type: "file", Value: "f"}}), left("image", "its source is of a kind that the model does not take")},
		"image, none":            {llm.OpenAIOptions{}, user(text, chat.Part{Type: "image"}), left("image", "it has no source")},
		"image, empty":           {llm.OpenAIOptions{}, user(text, chat.Part{Type: "image", Source: data("image/png", "")}), left("image", "it is empty")},
		"sound":                  {llm.OpenAIOptions{Parts: all}, user(text, chat.Part{Type: "audio", Source: data("audio/mpeg", "AAAA")}), `{"content":[{"text":"see","type":"text"},{"input_audio":{"data":"AAAA","format":"mp3"},"type":"input_audio"}],"role":"user"}`},
		"sound, other":           {llm.OpenAIOptions{Parts: all}, user(text, chat.Part{Type: "audio", Source: data("audio/ogg", "AAAA")}), left("audio", "sounds are taken as WAV or MP3")},
		"sound, not taken":       {llm.OpenAIOptions{}, user(text, chat.Part{Type: "audio", Source: data("audio/mpeg", "AAAA")}), left("audio", "the model does not take it")},
		"document":               {llm.OpenAIOptions{Parts: all}, user(text, chat.Part{Type: "document", Source: data("application/pdf", "AAAA")}), `{"content":[{"text":"see","type":"text"},{"file":{"file_data":"data:application/pdf;base64,AAAA","filename":"document"},"type":"file"}],"role":"user"}`},
		"video":                  {llm.OpenAIOptions{Parts: all}, user(text, chat.Part{Type: "video", Source: data("video/mp4", "AAAA")}), left("video", "the model does not take it")},
		"something":              {llm.OpenAIOptions{Parts: all}, user(text, chat.Part{Type: "x]"}), left("a part of an unknown type", "the model does not take it")},
	} {
		t.Run(name, func(t *testing.T) {
			request := llmtest.Ask("go")
			request.Messages = append(request.Messages, tt.m)
			var messages []any
			if err := json.Unmarshal(sent(t, tt.o, request)["messages"], &messages); err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(messages) > 1 {
				got = plainJSON(t, messages[1])
			}
			if got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

// plainJSON writes v with sorted keys and without the escapes that are for HTML.
func plainJSON(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

func TestSettingsOnTheWire(t *testing.T) {
	request := llmtest.Ask("go")
	request.MaxTokens = 100
	for name, tt := range map[string]struct {
		o    llm.OpenAIOptions
		want map[string]string // empty: it is not there
	}{
		"nothing set": {llm.OpenAIOptions{}, map[string]string{"model": `"fake-1"`, "stream": "true", "stream_options": `{"include_usage":true}`, "max_tokens": "100", "max_completion_tokens": "", "tools": ""}},
		"new bound":   {llm.OpenAIOptions{CompletionTokens: true}, map[string]string{"max_tokens": "", "max_completion_tokens": "100"}},
		"no usage":    {llm.OpenAIOptions{NoUsage: true}, map[string]string{"stream": "true", "stream_options": ""}},
		"extra":       {llm.OpenAIOptions{Extra: map[string]json.RawMessage{"temperature": json.RawMessage("0.10"), "top": json.RawMessage(`{"k":[1]}`)}}, map[string]string{"temperature": "0.10", "top": `{"k":[1]}`, "model": `"fake-1"`}},
		"other model": {llm.OpenAIOptions{Model: "other"}, map[string]string{"model": `"fake-1"`}},
	} {
		body := sent(t, tt.o, request)
		for member, want := range tt.want {
			if got := string(body[member]); got != want {
				t.Errorf("%s: %s is %s, want %s", name, member, got, want)
			}
		}
	}
	request.Model, request.MaxTokens = "", 0
	body := sent(t, llm.OpenAIOptions{Model: "own"}, request)
	if string(body["model"]) != `"own"` || body["max_tokens"] != nil {
		t.Errorf("model %s, max_tokens %s", body["model"], body["max_tokens"])
	}
}

// TestSchemasOnTheWire: what a model is told of a tool is what its author wrote.
func TestSchemasOnTheWire(t *testing.T) {
	schema := `{"type":"object","required":["z"],"properties":{"z":{"const":9007199254740993,"description":"a < b & c, я"},"a":{"maximum":1.10}}}`
	spec := tool.Spec{Name: "f", Description: "does <f>", InputSchema: json.RawMessage(schema)}
	request := llmtest.Ask("go")
	request.Tools = []chat.Function{chat.Function(tool.ToOpenAI(spec).Function), {Name: "bare"}}
	want := `[{"type":"function","function":{"name":"f","description":"does <f>","parameters":` + schema + `}},` +
		`{"type":"function","function":{"name":"bare","parameters":{"type":"object","properties":{}}}}]`
	if got := string(sent(t, llm.OpenAIOptions{}, request)["tools"]); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestRequestsThatAreNotSent(t *testing.T) {
	named := func(f chat.Function) chat.Request { r := llmtest.Ask("go"); r.Tools = []chat.Function{f}; return r }
	nameless := llmtest.Ask("go")
	nameless.Model = ""
	for want, r := range map[string]chat.Request{
		"refused by the provider: no model is named: name one for this agent":                                nameless,
		"refused by the provider: a request without a message":                                               {Model: "m"},
		`refused by the provider: tool "a.b": a name that models take has up to 64 letters, digits, _ and -`: named(chat.Function{Name: "a.b"}),
		`refused by the provider: tool "f": its schema is not JSON`:                                          named(chat.Function{Name: "f", Parameters: json.RawMessage("{")}),
	} {
		m, server := against(t, llm.OpenAIOptions{})
		if got := llmtest.Take(t, m.Stream(t.Context(), r)); !errors.Is(got.Err, chat.ErrRefused) || got.Err.Error() != want || len(server.Requests()) > 0 {
			t.Errorf("%v, want %s", got.Err, want)
		}
	}
}

const secret = "sk-very-secret-1234567890"

// TestKeysAreSentAndNeverTold: in no error, however it is written, whatever the
// provider says.
func TestKeysAreSentAndNeverTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]llm.OpenAIOptions{"value": {Key: secret, Attempts: 1}, "file": {KeyFile: file, Attempts: 1}} {
		m, server := against(t, o, saying("hi"), llmtest.Refuse(403, "", "the key "+secret+" may not"),
			llmtest.Stream(llmtest.Raw(`data: {"error":"`+secret+` is broke"}`+"\n\n")), llmtest.Plain(200, secret, ""), llmtest.Answer{Cut: -1})
		server.Key = secret
		if got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go"))); got.Text != "hi" {
			t.Errorf("%s: %v", name, got.Err)
		}
		for range 4 {
			wantQuiet(t, llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go"))).Err)
		}
		server.Key = "another"
		wantQuiet(t, llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go"))).Err)
	}
	m, server := against(t, llm.OpenAIOptions{}, saying("hi"))
	llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
	if h := server.Requests()[0].Header; h.Get("Authorization") != "" || h.Get("Accept") != "text/event-stream" {
		t.Errorf("without a key: %v", h)
	}
}

// wantQuiet looks through an error and all that it wraps.
func wantQuiet(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Error("no error")
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if all := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(all, secret) {
			t.Errorf("tells the key: %s", all)
		}
	}
}

// TestAKeyFileCanChange while the model is in use.
func TestAKeyFileCanChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	write := func(key string) {
		if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	m, server := against(t, llm.OpenAIOptions{KeyFile: file}, saying("hi"), saying("hi"))
	llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
	write("second")
	llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
	if first, second := server.Requests()[0].Header.Get("Authorization"), server.Requests()[1].Header.Get("Authorization"); first != "Bearer first" || second != "Bearer second" {
		t.Errorf("%q, then %q", first, second)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
	if want := "refused by the provider: key file: no such file or directory"; got.Err == nil || got.Err.Error() != want {
		t.Errorf("%v, want %s", got.Err, want)
	}
}

func TestBadSettings(t *testing.T) {
	dir := t.TempDir()
	file := func(name, body string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const fine = "https://example.org/v1"
	for want, tt := range map[string]struct {
		base string
		o    llm.OpenAIOptions
	}{
		"base URL: not a URL: write one such as https://api.openai.com/v1":                                {"http://a b" + secret, llm.OpenAIOptions{}},
		`base URL: scheme "": allowed are http and https, as in https://api.openai.com/v1`:                {"example.org/v1", llm.OpenAIOptions{}},
		`base URL: scheme "ftp": allowed are http and https, as in https://api.openai.com/v1`:             {"ftp://example.org", llm.OpenAIOptions{}},
		"base URL: names no host: write one such as https://api.openai.com/v1":                            {"https:///v1", llm.OpenAIOptions{}},
		"base URL: has user information: give the key as a key":                                           {"https://a:" + secret + "@example.org", llm.OpenAIOptions{}},
		"base URL: has a query or a fragment, which would be lost: leave it away":                         {"https://example.org/v1?key=" + secret, llm.OpenAIOptions{}},
		"key: given itself and as a file: one of them is wanted":                                          {fine, llm.OpenAIOptions{Key: secret, KeyFile: "x"}},
		"key: has a character that no key has: one line of letters, digits and signs is wanted":           {fine, llm.OpenAIOptions{Key: secret + "\n" + secret}},
		"key file: no such file or directory":                                                             {fine, llm.OpenAIOptions{KeyFile: filepath.Join(dir, "none")}},
		"key file: empty: write the key into it":                                                          {fine, llm.OpenAIOptions{KeyFile: file("empty", " \n")}},
		"key file: key: has a character that no key has: one line of letters, digits and signs is wanted": {fine, llm.OpenAIOptions{KeyFile: file("two", "a\nb\n")}},
		"key file: key: more than 16384 bytes":                                                            {fine, llm.OpenAIOptions{KeyFile: file("long", strings.Repeat("x", 1<<20))}},
		`extra member "model": it is set by other means`:                                                  {fine, llm.OpenAIOptions{Extra: map[string]json.RawMessage{"model": json.RawMessage(`"x"`)}}},
		`extra member "top_k": not JSON`:                                                                  {fine, llm.OpenAIOptions{Extra: map[string]json.RawMessage{"top_k": nil}}},
	} {
		if _, err := llm.NewOpenAI(tt.base, tt.o); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// TestConnectionsThatFail: the error says why, without the address.
func TestConnectionsThatFail(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = discard()
	secure.StartTLS()
	defer secure.Close()
	for name, tt := range map[string]struct{ base, want string }{
		"refused":     {"http://" + closed.Addr().String(), "the provider is unavailable: connection refused (tried 2 times)"},
		"no TLS":      {strings.Replace(plain.URL, "http:", "https:", 1), "the provider is unavailable: it does not speak TLS: check whether the base URL begins with http"},
		"not trusted": {secure.URL, "the provider is unavailable: its certificate is not trusted: check the base URL and this machine's authorities"},
	} {
		m, err := llm.NewOpenAI(tt.base, llm.OpenAIOptions{Key: secret, Attempts: 2})
		if err != nil {
			t.Fatal(err)
		}
		got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
		if !errors.Is(got.Err, chat.ErrUnavailable) || got.Err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", name, got.Err, tt.want)
		}
		m.Close()
	}
}

// TestOverTCP is the fake as other processes reach it, without a setting of the
// environment reaching the model.
func TestOverTCP(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_API_KEY", secret)
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Extra: "+secret)
	server := llmtest.Listen(t, saying("hi"))
	m, err := llm.NewOpenAI(server.URL, llm.OpenAIOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
	asked := server.Requests()[0]
	if got.Text != "hi" || asked.Path != "/v1/chat/completions" || asked.Method != "POST" || strings.Contains(fmt.Sprint(asked.Header), secret) {
		t.Errorf("%q, %v: %s %s %v", got.Text, got.Err, asked.Method, asked.Path, asked.Header)
	}
}

// TestHeadersAreBounded, which a provider could go on sending.
func TestHeadersAreBounded(t *testing.T) {
	large := 32 << 10
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Filler", strings.Repeat("x", large))
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, strings.Join(saying("hi").Events, ""))
	}))
	defer server.Close()
	m, err := llm.NewOpenAI(server.URL, llm.OpenAIOptions{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go"))); got.Text != "hi" {
		t.Errorf("%d bytes: %v", large, got.Err)
	}
	large = 1 << 20
	if got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go"))); !errors.Is(got.Err, chat.ErrUnavailable) {
		t.Errorf("%d bytes: %v", large, got.Err)
	}
}
