package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
)

// FuzzReadFrame feeds the parent whatever a worker may send while two calls are
// pending, one with listeners and one without. It must neither panic nor settle
// a call twice, and what it accepts is within the limits.
func FuzzReadFrame(f *testing.F) {
	usage := string(encodeUsage(abi.Usage{}))
	hello := goodFrame(kindHello, 0, protocolVersion)
	for _, frames := range [][]byte{
		goodFrame(kindDone, 1, usage+"{}"),
		goodFrame(kindFailed, 1, `{"class":"trap","text":"x","usage":{"logLines":-1}}`),
		goodFrame(kindAsk, 1, "\x06kv_get{}"),
		goodFrame(kindLog, 1, "\x02line"),
		goodFrame(kindProgress, 1, `{"progress":1e999}`),
		rawFrame(kindDone, 2, 1<<32-1, "short"),
		goodFrame(kindDone, 2, usage),
	} {
		f.Add(append(bytes.Clone(hello), frames...))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		p := &process{
			o:     processOptions{log: slog.New(slog.DiscardHandler), calls: 2, count: &counters{}},
			out:   make(chan frame, 64),
			hello: make(chan struct{}), ended: make(chan struct{}), turns: make(chan struct{}, 2),
			calls: map[uint64]*call{},
		}
		ctx, cancel := context.WithCancel(t.Context())
		loud := &call{ctx: ctx, free: func() {}, request: request{kind: kindCall, max: 100, inv: abi.Invocation{
			Limits:   abi.Limits{LogLines: 2, LogLineBytes: 8, HostCalls: 2}.WithDefaults(),
			Host:     func(context.Context, abi.Request) abi.Response { return abi.Response{Body: []byte("{}")} },
			Log:      func(abi.LogLevel, string) {},
			Progress: func(step json.RawMessage) { mustBeJSON(t, step) },
		}}}
		quiet := &call{ctx: ctx, free: func() {}, request: request{kind: kindDescribe, max: 10}}
		p.register(loud)
		p.register(quiet)
		_ = p.receive(bytes.NewReader(wire)) // any error is a fine answer to garbage
		cancel()
		p.gated.Wait()
		for _, c := range []*call{loud, quiet} {
			select {
			case o := <-c.answer:
				if len(o.body) > c.max || o.usage.HostCalls < 0 || o.usage.LogLines < 0 {
					t.Errorf("call %d: accepted %d bytes, usage %+v", c.id, len(o.body), o.usage)
				}
			default:
			}
		}
		if len(p.out) > 2 || loud.asked > 2 || loud.lines > 2+spareLogLines {
			t.Errorf("%d answers, %d asked, %d lines, over the budgets", len(p.out), loud.asked, loud.lines)
		}
	})
}

// FuzzReadFrameWorker feeds the worker whatever a parent may send.
func FuzzReadFrameWorker(f *testing.F) {
	load, err := encodeHead(loadHead{Calls: 1})
	if err != nil {
		f.Fatal(err)
	}
	head, err := encodeHead(callHead{Tool: "ask", Host: true, Log: true, Progress: true})
	if err != nil {
		f.Fatal(err)
	}
	loaded := goodFrame(kindLoad, 1, string(load)+"wasm")
	for _, frames := range [][]byte{
		goodFrame(kindDescribe, 2, ""),
		goodFrame(kindCall, 2, string(head)+"{}"),
		append(goodFrame(kindCall, 2, string(head)+"{}"), goodFrame(kindAnswer, 2, "\x00\x00\x00\x01{}")...),
		goodFrame(kindCancel, 2, ""),
		rawFrame(kindCall, 2, 1<<32-1, "short"),
	} {
		f.Add(append(bytes.Clone(loaded), frames...))
	}
	f.Fuzz(func(_ *testing.T, wire []byte) {
		_ = serve(bytes.NewReader(wire), io.Discard, waitingLoader, slog.New(slog.DiscardHandler))
	})
}

func mustBeJSON(t *testing.T, text []byte) {
	if !json.Valid(text) {
		t.Errorf("progress %q is no JSON", text)
	}
}
