package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
)

// recording is what a call met, as a file keeps it: it can be made again without a
// network, a storage or a policy. It holds no secret.
type recording struct {
	// Config is what the module read with config_get, with placeholders in it.
	Config map[string]string `json:"config,omitempty"`
	// Values is the module's storage before the call; nil if it has none. Only key,
	// value and base64 count.
	Values []abi.KVSet `json:"values,omitzero"`
	// Exchanges are the answers it got, in order.
	Exchanges []gate.Exchange `json:"exchanges,omitempty"`
}

// maxRecording is the largest file of a recording: it lies beside sources.
const maxRecording = 4 << 20

// readRecording reads a recording. Files are made by hand too, so it is strict.
func readRecording(path string) (r recording, err error) {
	body, err := readArgumentFile(path)
	if err != nil {
		return r, err
	}
	if len(body) > maxRecording {
		return r, fmt.Errorf("%s: larger than %s", quoted(path), formatSize(maxRecording))
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err = d.Decode(&r); err == nil {
		err = rawjson.Check(body, rawjson.MaxDepth)
	}
	for i, e := range r.Exchanges {
		switch {
		case err != nil:
		case e.Op.Capability() == "":
			err = fmt.Errorf("exchange %d: no operation %s", i+1, quoted(string(e.Op)))
		case e.Request == nil || e.Answer == nil:
			err = fmt.Errorf("exchange %d: request and answer must be there", i+1)
		case e.Code < abi.OK || e.Code > abi.Cancelled:
			err = fmt.Errorf("exchange %d: code %d, allowed are %d to %d", i+1, e.Code, abi.OK, abi.Cancelled)
		}
	}
	if err != nil {
		return recording{}, fmt.Errorf("%s%s: %w", quoted(path), position(body, err), understandable(err))
	}
	return r, nil
}

// text is r as its file has it, the same each time. What holds a secret, be it that
// a policy has one in plain text, is refused.
func (r recording) text(redactor *secrets.Redactor) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	if b.Len() > maxRecording {
		return nil, fmt.Errorf("the answers have %s, at most %s are kept: have the tool ask for less", formatSize(int64(b.Len())), formatSize(maxRecording))
	}
	if _, n := redactor.JSON(b.Bytes()); n > 0 {
		return nil, errors.New("the value of a secret is in what would be kept: write secret://NAME where the policy has it in config")
	}
	return b.Bytes(), nil
}

func (r recording) write(path string, redactor *secrets.Redactor) error {
	body, err := r.text(redactor)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return writeAtomic(path, body)
}

// tape keeps the exchanges of one call that can be played again.
type tape struct {
	mu      sync.Mutex
	kept    []gate.Exchange
	config  map[string]string // what was read of it
	refused []string          // what was not answered, and why
}

// around returns a host that serves as next does, and configuration, and keeps both.
func (k *tape) around(next abi.Host, config map[string]string) abi.Host {
	recorded := gate.Recorded(func(ctx context.Context, r abi.Request) abi.Response {
		if next == nil {
			return abi.Refuse(abi.Denied, string(r.Op)+": nothing is granted to this module")
		}
		return lasting(r, next(ctx, r))
	}, k.keep)
	return func(ctx context.Context, r abi.Request) abi.Response {
		if r.Op == abi.OpConfig {
			return k.configured(r, config)
		}
		return recorded(ctx, r)
	}
}

// configured answers config_get.
func (k *tape) configured(r abi.Request, config map[string]string) abi.Response {
	var key string
	if err := json.Unmarshal(r.Body, &key); err != nil {
		return abi.Refuse(abi.Invalid, "config_get: the key is no JSON string")
	}
	value, ok := config[key]
	if !ok {
		return abi.Response{Body: []byte("null")}
	}
	body, err := json.Marshal(value)
	if err != nil {
		return abi.Refuse(abi.Unavailable, "config_get: the value is no text")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.config == nil {
		k.config = map[string]string{}
	}
	k.config[key] = value
	return abi.Response{Body: body}
}

// keep takes one exchange. Values are kept as what was there before the call, for
// what is written may be another thing each time.
func (k *tape) keep(e gate.Exchange) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch e.Code {
	case abi.Denied, abi.Unavailable, abi.Cancelled:
		k.refused = append(k.refused, messageOf(e))
		return
	}
	if e.Op.Capability() == abi.OpKVGet.Capability() {
		return
	}
	if root, err := rawjson.Parse(e.Request, rawjson.MaxDepth); err == nil {
		e.Request = root.Canonical().Compact()
	}
	k.kept = append(k.kept, e)
}

// recording returns what was kept, and what was refused.
func (k *tape) recording() (r recording, refused []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return recording{Config: k.config, Exchanges: k.kept}, k.refused
}

// messageOf is what a refusal says.
func messageOf(e gate.Exchange) string {
	var answer struct{ Error struct{ Message string } }
	if json.Unmarshal(e.Answer, &answer) != nil || answer.Error.Message == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Code)
	}
	return abi.OneLine(answer.Error.Message, 500)
}

// lasting returns an answer without what is another each time and says nothing about
// it. A guest gets in a call that is recorded what it gets when that is played.
func lasting(r abi.Request, response abi.Response) abi.Response {
	if r.Op != abi.OpHTTP || response.Code != abi.OK {
		return response
	}
	var a abi.HTTPResponse
	if json.Unmarshal(response.Body, &a) != nil {
		return response
	}
	for name := range a.Headers {
		if passing(name) {
			delete(a.Headers, name)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a); err != nil {
		return response
	}
	return abi.Response{Body: bytes.TrimSpace(b.Bytes())}
}

// passing reports whether a header is about the moment or the one request. The length
// is that of an answer with its secrets.
func passing(name string) bool {
	switch name {
	case "Age", "Content-Length", "Date", "Expires", "Request-Id", "X-Request-Id", "X-Github-Request-Id":
		return true
	}
	for _, prefix := range []string{"Ratelimit", "X-Ratelimit-", "X-Rate-Limit-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
