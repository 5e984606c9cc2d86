package relay

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// message is what of a JSON-RPC message matters to a relay.
type message struct {
	id     string // as written, empty if there is none
	method string // empty in an answer
	code   int64  // of an answer that is an error
}

func (m message) request() bool { return m.method != "" && m.id != "" }
func (m message) answer() bool  { return m.method == "" && m.id != "" }

// peek reads a message as far as it must. A line that is no message is one
// without id and method: the server says what is wrong with it.
func peek(line []byte) message {
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return message{}
	}
	var m message
	for d.More() && (m.id == "" || m.method == "") {
		key, err := d.Token()
		if err != nil {
			return m
		}
		if m.id != "" && key == "result" {
			return m // what follows can be long
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return m
		}
		switch key {
		case "id":
			if text := string(value); text != "null" {
				m.id = text
			}
		case "method":
			_ = json.Unmarshal(value, &m.method) // one that is no text stays empty
		case "error":
			var e struct{ Code int64 }
			_ = json.Unmarshal(value, &e) // one that is no error has no code
			m.code = e.Code
		}
	}
	return m
}

// lost answers a request whose server ended. A tool may have done its work, which
// only the model that called it can judge; so that is the tool's own failure and
// not the protocol's (MCP 2025-11-25, server/tools, error handling).
func lost(id, method, how string) []byte {
	if method == "tools/call" {
		return toolFailed(id, "the hutch process that ran the tools "+how+" during this call: it may or may not have been done; look before you call again")
	}
	return failed(id, "the hutch process that answered "+how+"; try again")
}

// How a server is lost.
const (
	howEnded = "ended"
	howMute  = "stopped responding"
)

// toolFailed answers a call with a result that its model can read.
func toolFailed(id, text string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}],"isError":true}}`, id, text)
}

// failed answers a request with JSON-RPC's code for an internal error.
func failed(id, text string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%q}}`, id, text)
}
