package dialect

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/sandbox"
)

// HTTP as an Extism kit knows it, made of [abi.OpHTTP], whose request is an
// [abi.HTTPRequest] and whose result is an [abi.HTTPResponse].
//
// An Extism guest sends {"url","method","headers"} and the body as a second
// block; it gets the response's body, and asks for status and headers. A
// request that was refused or went wrong is status 0 without body and headers,
// which a kit hands to the plugin as a response; the reason is logged.

// httpResponse is what a v1 guest may still ask about the last response.
type httpResponse struct {
	status  int
	headers []byte // JSON, names in lower case
}

// maxMetaBytes bounds what of a request is read here: all but its body.
const maxMetaBytes = 256 << 10

// extismHTTPRequest looks at sizes before it copies anything: a block may be as large as
// the tool's memory, and to read that much JSON takes a second.
func extismHTTPRequest(ctx context.Context, c *call, in *sandbox.Instance, stack []uint64) {
	s := &c.extism
	metaAt, bodyAt := stack[0], stack[1]
	metaBytes, bodyBytes := s.arena.length(metaAt), s.arena.length(bodyAt)
	stack[0], s.response = 0, httpResponse{}
	if metaBytes > maxMetaBytes || bodyBytes > maxRequestBytes {
		r := refuse(abi.Limit, abi.OpHTTP, "request of %d bytes with a body of %d, at most %d with %d", metaBytes, bodyBytes, maxMetaBytes, maxRequestBytes)
		c.journal.write(abi.Warn, []byte(refusalText(r)))
		return
	}
	in.Moved(int(metaBytes+bodyBytes) * readAndWritten)
	request, err := httpRequest(s.arena.block(metaAt), s.arena.block(bodyAt))
	if err != nil {
		c.journal.write(abi.Warn, []byte("http_request: the request is no JSON as Extism has it"))
		return
	}
	r := c.ask(ctx, abi.OpHTTP, len(request), func() ([]byte, bool) { return request, true })
	var result abi.HTTPResponse
	if r.Code != abi.OK || json.Unmarshal(r.Body, &result) != nil {
		c.journal.write(abi.Warn, []byte(refusalText(r)))
		return
	}
	s.response = httpResponse{result.Status, joinHeaders(result.Headers)}
	if len(result.BodyBase64) == 0 {
		result.BodyBase64 = []byte(result.Body)
	}
	stack[0] = s.give("an HTTP response", result.BodyBase64)
}

// readAndWritten is how many times a byte of JSON costs what a byte that is copied does.
const readAndWritten = 256

// httpRequest puts an Extism request and its body into one.
func httpRequest(meta, body []byte) ([]byte, error) {
	var kit struct {
		URL     string            `json:"url"`
		Method  string            `json:"method"`
		Headers map[string]string `json:"headers"`
	}
	if err := json.Unmarshal(meta, &kit); err != nil {
		return nil, err
	}
	x := abi.HTTPRequest{Method: strings.ToUpper(kit.Method), URL: kit.URL, Headers: kit.Headers}
	if x.Method == "" {
		x.Method = "GET"
	}
	if utf8.Valid(body) {
		x.Body = string(body)
	} else {
		x.BodyBase64 = body
	}
	return json.Marshal(x)
}

// joinHeaders turns {"Name":["a","b"]} into {"name":"a,b"}.
func joinHeaders(values map[string][]string) []byte {
	if len(values) == 0 {
		return nil
	}
	joined := map[string]string{}
	for name, v := range values {
		joined[strings.ToLower(name)] = strings.Join(v, ",")
	}
	b, err := json.Marshal(joined)
	if err != nil {
		return nil
	}
	return b
}

// refusalText says why a request came to nothing.
func refusalText(r abi.Response) string {
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if r.Code == abi.OK || json.Unmarshal(r.Body, &body) != nil || body.Error.Message == "" {
		return "http_request: " + r.Code.String() + ", without a reason"
	}
	return body.Error.Message
}

func extismHTTPStatus(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	setI32(stack, c.extism.response.status)
}

func extismHTTPHeaders(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	stack[0] = c.extism.give("HTTP headers", c.extism.response.headers)
}
