package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/hutch-run/hutch/protocol/tool"
)

var update = flag.Bool("update", false, "write what the tests got into testdata")

// TestTranscripts runs testdata/*.txtar: in each archive the file "stdio" or
// "http" holds messages to the server (->) and what comes back (<-).
//
// Over HTTP, a line "-> POST Header: value; Header: value" goes before each
// message, or before (nothing); an MCP session id is kept and sent along, and
// shown as SESSION.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range archive.Files {
				archive.Files[i].Data = transcript(t, f.Name, sent(f.Data))
			}
			compareGolden(t, file, txtar.Format(archive))
		})
	}
}

func compareGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it)\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

// sent returns the lines to the server.
func sent(data []byte) []string {
	var lines []string
	for line := range strings.Lines(string(data)) {
		if out, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-> "); ok {
			lines = append(lines, out)
		}
	}
	return lines
}

func transcript(t *testing.T, wire string, lines []string) []byte {
	f := newFakeTools()
	f.call = scripted(f)
	s := newServer(t, f, Options{Name: "hutch", Title: "Hutch", Version: "1.2.3", Instructions: "Be kind."})
	if wire == "stdio" {
		return stdioTranscript(t, s, lines)
	}
	return httpTranscript(t, s, lines)
}

// scripted adds to the fake's tools one that reports progress and one that
// answers with every kind of block.
func scripted(f *fakeTools) func(context.Context, tool.Caller, tool.Call) (tool.Result, error) {
	plain := newFakeTools()
	return func(ctx context.Context, c tool.Caller, call tool.Call) (tool.Result, error) {
		switch call.Name {
		case "steps":
			for i := range 3 {
				if call.Progress != nil {
					call.Progress(tool.Progress{Progress: float64(i), Total: 2, Message: "step"})
				}
			}
			return tool.Text("stepped"), nil
		case "blocks":
			return everyBlock(), nil
		case "list":
			return tool.Result{Structured: json.RawMessage(`[1, 12345678901234567890]`)}, nil
		}
		return plain.Call(ctx, c, call)
	}
}

func everyBlock() tool.Result {
	size := int64(3)
	return tool.Result{
		Meta: json.RawMessage(`{"example.org/n":12345678901234567890,"io.modelcontextprotocol/serverInfo":{"name":"evil"},"progressToken":1}`),
		Content: []tool.Content{
			{Type: "text"},
			{Type: "image", Data: "AAAA", MIMEType: "image/png", Annotations: json.RawMessage(`{"priority":0.10}`)},
			{Type: "image", Data: "not base64", MIMEType: "image/png"},
			{Type: "audio", Data: "AAAA", MIMEType: "audio/wav"},
			{Type: "resource", Resource: json.RawMessage(`{"uri":"x:y","text":"<&>","_meta":{"n":1.0}}`)},
			{Type: "resource", Resource: json.RawMessage(`{"uri":"x:y"}`)},
			{Type: "resource_link", URI: "x:z", Name: "z", Size: &size},
			{Type: "video"},
		},
	}
}

func stdioTranscript(t *testing.T, s *Server, lines []string) []byte {
	var b bytes.Buffer
	p := newStdio(within(t), t, s)
	in := bufio.NewReader(p.out)
	for _, line := range lines {
		fmt.Fprintf(&b, "-> %s\n", line)
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		for answered := silent(line); !answered; {
			got, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "<- %s", got)
			answered = !strings.Contains(got, `"method":`)
		}
	}
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(in)
	if err != nil || len(rest) > 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
	if err := <-p.done; err != nil {
		t.Errorf("served until %v", err)
	}
	return b.Bytes()
}

// silent reports whether a line gets no answer: one without an id that is a
// message nevertheless, and a blank one.
func silent(line string) bool {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	err := json.Unmarshal([]byte(line), &m)
	return strings.TrimSpace(line) == "" || err == nil && m.ID == nil && m.Method != "" && !strings.Contains(line, "METHOD")
}

var sessionRE = regexp.MustCompile(`[A-Z2-7]{26}`)

func httpTranscript(t *testing.T, s *Server, lines []string) []byte {
	var b bytes.Buffer
	url, client, session := newHTTP(t, s), httpClient(t), ""
	for i := 0; i+1 < len(lines); i += 2 {
		fmt.Fprintf(&b, "-> %s\n-> %s\n", lines[i], lines[i+1])
		method, headers, _ := strings.Cut(lines[i], " ")
		body := lines[i+1]
		if body == "(nothing)" {
			body = ""
		}
		req := newRequest(within(t), t, method, url, body)
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		setHeaders(req, headers)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
		b.WriteString(responseText(t, resp))
	}
	return b.Bytes()
}

func newRequest(ctx context.Context, t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	return req
}

// setHeaders takes "Name: value; Name: value"; an empty value removes one.
func setHeaders(req *http.Request, headers string) {
	for header := range strings.SplitSeq(headers, "; ") {
		name, value, ok := strings.Cut(header, ":")
		switch value = strings.TrimSpace(value); {
		case !ok:
		case value == "":
			req.Header.Del(name)
		case name == "Host":
			req.Host = value
		default:
			req.Header.Set(name, value)
		}
	}
}

// responseText shows status, type and each message of a response.
func responseText(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	out := strings.TrimSpace(fmt.Sprintf("<- %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))) + "\n"
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		line = strings.TrimPrefix(line, "data: ")
		if line != "" && !strings.HasPrefix(line, "event: ") {
			out += "<- " + line + "\n"
		}
	}
	return sessionRE.ReplaceAllString(out, "SESSION")
}
