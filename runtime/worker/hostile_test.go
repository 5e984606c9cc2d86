package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// hostile is a worker that answers its load properly and then, given a call,
// sends evil instead of an answer.
func hostile(evil func(id uint64) []byte) func(w *fakeWorker, in io.Reader, out io.Writer) error {
	return func(w *fakeWorker, in io.Reader, out io.Writer) error {
		if _, err := out.Write(goodFrame(kindHello, 0, protocolVersion)); err != nil {
			return err
		}
		r := bufio.NewReader(in)
		for {
			h, err := readHeader(r)
			if err != nil {
				return err
			}
			if _, err := io.CopyN(io.Discard, r, int64(h.size)); err != nil {
				return err
			}
			reply := evil(h.id)
			if h.kind == kindLoad {
				reply = goodFrame(kindDone, h.id, string(encodeUsage(abi.Usage{})))
			}
			if h.kind == kindCancel || h.kind == kindAnswer {
				continue
			}
			if _, err := out.Write(reply); err != nil {
				return err
			}
		}
	}
}

// newHostile returns a pool whose workers run main.
func newHostile(t *testing.T, main func(w *fakeWorker, in io.Reader, out io.Writer) error) *fake {
	t.Helper()
	f := &fake{logged: &logBuffer{}}
	launch := func() (*child, error) {
		w := &fakeWorker{pid: 1, killed: make(chan struct{})}
		return inMemory(w, func(in io.Reader, out io.Writer) error { return main(w, in, out) }), nil
	}
	f.Pool = newPool(Options{Logger: slog.New(slog.NewTextHandler(f.logged, nil))}.withDefaults(), launch, f.measure, func() {})
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// A worker that says what ours would not is killed; its call fails with a type,
// and an operator reads what it said.
func TestHostileWorkerIsKilled(t *testing.T) {
	const kv = "\x06kv_get"
	usage := string(encodeUsage(abi.Usage{}))
	line := func(n int) string { return "\x02" + strings.Repeat("x", n) }
	many := func(n int, one func(id uint64) []byte) func(uint64) []byte {
		return func(id uint64) []byte { return bytes.Repeat(one(id), n) }
	}
	one := func(k kind, body string) func(uint64) []byte {
		return func(id uint64) []byte { return goodFrame(k, id, body) }
	}
	claim := func(k kind, n int) func(uint64) []byte {
		return func(id uint64) []byte { return rawFrame(k, id, n, "") }
	}
	for _, test := range []struct {
		name string
		evil func(id uint64) []byte
		log  string
	}{
		{"result of 4 GiB", claim(kindDone, 1<<32-1), "done frame of 4294967295 bytes, at most 1048793"},
		{"frame one over the limit", claim(kindDone, 1<<20+218), "done frame of 1048794 bytes, at most 1048793"},
		{"question of 4 GiB", claim(kindAsk, 1<<32-1), "ask frame of 4294967295 bytes"},
		{"log line over the limit", claim(kindLog, 8<<10+66), "log frame of 8258 bytes, at most 8257"},
		{"progress over the limit", claim(kindProgress, 4<<10+1), "progress frame of 4097 bytes, at most 4096"},
		{"failure over the limit", claim(kindFailed, 64<<10+1), "failed frame of 65537 bytes"},
		{"answer to nobody", func(uint64) []byte { return goodFrame(kindDone, 99, usage) }, "done frame for call 99, which is not pending"},
		{"answer to the load again", func(uint64) []byte { return goodFrame(kindDone, 1, usage) }, "call 1, which is not pending"},
		{"answer twice", many(2, one(kindDone, usage+"{}")), "which is not pending"},
		{"question for a call that ended", func(id uint64) []byte {
			return append(goodFrame(kindDone, id, usage+"{}"), goodFrame(kindAsk, id, kv+"{}")...)
		}, "ask frame for call 2, which is not pending"},
		{"done without usage", one(kindDone, "1234567"), "done of 7 bytes, at least 17"},
		{"failure that is not JSON", one(kindFailed, "no"), "decode failed frame"},
		{"failure of a class not its own", one(kindFailed, `{"class":"worker_lost","text":"try me again"}`), `class \"worker_lost\" is not a worker's to give`},
		{"unknown operation", one(kindAsk, "\x06launch{}"), `unknown operation \"launch\"`},
		{"question about configuration", one(kindAsk, "\x0aconfig_get\"key\""), "a question about configuration, which it was given"},
		{"operation cut short", one(kindAsk, "\xffkv_get"), "ask is cut short"},
		{"empty question", one(kindAsk, ""), "ask is cut short"},
		{"question that is not JSON", one(kindAsk, kv+"{"), "kv_get with a body that is not JSON"},
		{"second question at once", many(2, one(kindAsk, kv+"{}")), "second question before the first was answered"},
		{"log without level", one(kindLog, ""), "log line without a level"},
		{"log of an unknown level", one(kindLog, "\x05hello"), "log line without a level"},
		{"log flood", many(102, one(kindLog, line(1))), "more than 101 frames"},
		{"progress flood", many(maxProgressRun+1, one(kindProgress, `{"progress":1}`)), "more than 2000 frames"},
		{"progress that is not JSON", one(kindProgress, `{"progress":`), "progress without a number"},
		{"progress without a number", one(kindProgress, `{"message":"m"}`), "progress without a number"},
		{"second hello", one(kindHello, protocolVersion), "hello frame, which is not expected here"},
		{"a parent's frame", one(kindCall, ""), "call frame, which is not expected here"},
		{"unknown frame", one(77, ""), "kind 77 frame, which is not expected here"},
		{"garbage", func(uint64) []byte { return bytes.Repeat([]byte("\xfe"), 1<<16) }, "not pending"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				f := newHostile(t, func(_ *fakeWorker, in io.Reader, out io.Writer) error { return hostile(test.evil)(nil, in, out) })
				in := tool("any", `{}`)
				stall := make(chan struct{})
				in.Host = func(ctx context.Context, _ abi.Request) abi.Response {
					select {
					case <-stall:
					case <-ctx.Done():
					}
					return abi.Response{Body: []byte("{}")}
				}
				in.Log = func(abi.LogLevel, string) {}
				in.Progress = func(json.RawMessage) {}
				// An evil that comes after a proper answer costs that call nothing.
				if body, _, err := f.Call(t.Context(), numbered(1), in); err != nil {
					wantClass(t, err, abi.ClassWorkerLost, "")
				} else if string(body) != "{}" {
					t.Errorf("answer %q", body)
				}
				synctest.Wait()
				if log := f.logged.String(); !strings.Contains(log, test.log) {
					t.Errorf("log %q, want %q", log, test.log)
				}
				if s := f.Stats(); s.Workers != 0 || s.Ends["protocol"] != s.Starts {
					t.Errorf("stats %+v, want each worker killed for it", s)
				}
				runtime.ReadMemStats(&after)
				if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
					t.Errorf("%d bytes allocated", grown)
				}
			})
		})
	}
}

// What nobody listens to, ours does not send.
func TestHostileWorkerAsksForWhatNobodyServes(t *testing.T) {
	for k, body := range map[kind]string{
		kindAsk: "\x06kv_get{}", kindLog: "\x02hello", kindProgress: `{"progress":1}`,
	} {
		t.Run(k.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newHostile(t, hostile(func(id uint64) []byte { return goodFrame(k, id, body) }))
				_, _, err := f.Call(t.Context(), numbered(1), tool("any", `{}`))
				wantClass(t, err, abi.ClassWorkerLost, "")
				_, err = f.Describe(t.Context(), numbered(1))
				wantClass(t, err, abi.ClassWorkerLost, "")
			})
		})
	}
}

// The budget is kept on this side too: the host never sees one call too many.
func TestHostileWorkerOverItsHostCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asked := goodFrame(kindAsk, 2, "\x06kv_get{}")
		f := newHostile(t, func(w *fakeWorker, in io.Reader, out io.Writer) error {
			for range 2 { // hello and load
				if err := step(in, out, w); err != nil {
					return err
				}
			}
			if _, err := readFrame(in); err != nil {
				return err
			}
			for {
				if _, err := out.Write(asked); err != nil {
					return err
				}
				if _, err := readFrame(in); err != nil {
					return err
				}
			}
		})
		in := tool("any", `{}`)
		in.Limits.HostCalls = 3
		var served int
		in.Host = func(context.Context, abi.Request) abi.Response { served++; return abi.Response{Body: []byte("{}")} }
		_, usage, err := f.Call(t.Context(), numbered(1), in)
		wantClass(t, err, abi.ClassWorkerLost, "")
		if served != 3 || usage.HostCalls != 3 {
			t.Errorf("%d operations served, usage %+v, want 3", served, usage)
		}
		if s := f.Stats(); s.Reruns != 0 {
			t.Errorf("a call with gated operations was run again")
		}
	})
}

// step plays the worker's part up to a loaded module, one frame a call.
func step(in io.Reader, out io.Writer, w *fakeWorker) error {
	if !w.greeted {
		w.greeted = true
		_, err := out.Write(goodFrame(kindHello, 0, protocolVersion))
		return err
	}
	h, err := readFrame(in)
	if err != nil {
		return err
	}
	_, err = out.Write(goodFrame(kindDone, h.id, string(encodeUsage(abi.Usage{}))))
	return err
}

func readFrame(in io.Reader) (header, error) {
	h, err := readHeader(in)
	if err == nil {
		_, err = io.CopyN(io.Discard, in, int64(h.size))
	}
	return h, err
}

func TestWorkerThatDoesNotStart(t *testing.T) {
	for _, test := range []struct {
		name   string
		main   func(w *fakeWorker, in io.Reader, out io.Writer) error
		reason string
		class  abi.Class
		log    string
	}{
		{"says nothing", func(w *fakeWorker, _ io.Reader, _ io.Writer) error { <-w.killed; return nil }, "start", abi.ClassInternal, "reason=start"},
		{"leaves at once", func(*fakeWorker, io.Reader, io.Writer) error { return nil }, "crash", abi.ClassWorkerLost, "its last words"},
		{"speaks another version", func(w *fakeWorker, _ io.Reader, out io.Writer) error {
			_, err := out.Write(goodFrame(kindHello, 0, "hutch-worker 0"))
			<-w.killed
			return err
		}, "protocol", abi.ClassInternal, "is it of the same release?"},
		{"speaks something else", func(w *fakeWorker, _ io.Reader, out io.Writer) error {
			_, err := io.WriteString(out, "Usage: cat [OPTION]... [FILE]...\n")
			<-w.killed
			return err
		}, "protocol", abi.ClassInternal, "first frame is a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newHostile(t, test.main)
				_, err := f.Describe(t.Context(), numbered(1))
				wantClass(t, err, test.class, "start")
				synctest.Wait()
				if s := f.Stats(); s.Ends[test.reason] != 1 || s.Workers != 0 {
					t.Errorf("stats %+v, want it ended as %s", s, test.reason)
				}
				if log := f.logged.String(); !strings.Contains(log, test.log) {
					t.Errorf("log %q, want %q", log, test.log)
				}
			})
		})
	}
}

// A worker that stops reading blocks neither its callers' deadlines nor Close.
func TestWorkerThatStopsReading(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newHostile(t, func(w *fakeWorker, in io.Reader, out io.Writer) error {
			for range 2 {
				if err := step(in, out, w); err != nil {
					return err
				}
			}
			<-w.killed
			return nil
		})
		in := tool("any", `{}`)
		in.Limits.Wall = time.Second
		_, _, err := f.Call(t.Context(), numbered(1), in)
		wantClass(t, err, abi.ClassTimeout, "1s")
	})
}

// The worker's side holds its parent to the protocol as well.
func TestHostileParent(t *testing.T) {
	head := func(v any) string {
		b, err := encodeHead(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	load := goodFrame(kindLoad, 1, head(loadHead{Calls: 1})+"wasm")
	call := goodFrame(kindCall, 2, head(callHead{Tool: "wait"})+"{}")
	for _, test := range []struct {
		name string
		sent [][]byte
		want string // "" for a clean end
	}{
		{"nothing", nil, ""},
		{"cancel of nothing", [][]byte{goodFrame(kindCancel, 7, "")}, ""},
		{"answer to nobody", [][]byte{goodFrame(kindAnswer, 7, "\x00\x00\x00\x00{}")}, ""},
		{"module of 4 GiB", [][]byte{rawFrame(kindLoad, 1, 1<<32-1, "")}, "at most 67108864"},
		{"call of 4 GiB", [][]byte{load, rawFrame(kindCall, 2, 1<<32-1, "")}, "at most 67108864"},
		{"cancel with a body", [][]byte{rawFrame(kindCancel, 2, 1, "x")}, "at most 0"},
		{"frame of a worker", [][]byte{goodFrame(kindDone, 1, "")}, "not expected here"},
		{"unknown frame", [][]byte{goodFrame(0, 1, "")}, "not expected here"},
		{"cut in the header", [][]byte{{0, 0, 0}}, "unexpected EOF"},
		{"cut in the body", [][]byte{rawFrame(kindLoad, 1, 10, "123")}, "unexpected EOF"},
		{"load without head", [][]byte{goodFrame(kindLoad, 1, "\xff\xff\xff\xff")}, "head claims 4294967295 bytes, 0 are left"},
		{"call without head", [][]byte{load, goodFrame(kindCall, 2, "")}, "head of 0 bytes"},
		{"two modules", [][]byte{load, load}, "a module is loaded already"},
		{"call before the module", [][]byte{call}, "no module is loaded"},
		{"answer without code", [][]byte{goodFrame(kindAnswer, 2, "\x00")}, "answer of 1 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				in := bytes.NewReader(bytes.Join(test.sent, nil))
				err := serve(in, io.Discard, waitingLoader, slog.New(slog.DiscardHandler))
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			})
		})
	}
}

// waitingLoader loads a guest whose calls end when they are told to.
func waitingLoader(context.Context, []byte, loadHead) (guest, loadReport, error) {
	w := &fakeWorker{killed: make(chan struct{}), kill: func() {}}
	return &fakeGuest{w, behaviour{"wait": usual["polite"], "ask": usual["ask"]}}, loadReport{}, nil
}
