package dialect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/sandbox"
)

// memoryBytes is the size of a built module's memory.
const memoryBytes = 17 * abi.PageBytes

// wall is an instance whose host functions a test calls by itself, as the guest
// would.
type wall struct {
	t     *testing.T
	in    *sandbox.Instance
	c     *call
	funcs map[string]sandbox.HostFunc
}

func newWall(t *testing.T, v1 bool, in abi.Invocation, input string) *wall {
	t.Helper()
	g := loaded(t, mod{V1: v1}, Options{})
	in.Limits = in.Limits.WithDefaults()
	w := &wall{t: t, c: newCall(3, []byte(input), in), funcs: map[string]sandbox.HostFunc{}}
	instance, err := g.module.Instantiate(t.Context(), sandbox.Config{State: w.c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w.in = instance
	for _, h := range hosts(g.Kind()) {
		for _, f := range h.Funcs {
			w.funcs[f.Name] = f
		}
	}
	return w
}

// call calls a host function; i32 results come back signed.
func (w *wall) call(name string, args ...int64) int64 {
	w.t.Helper()
	f := w.funcs[name]
	stack := make([]uint64, max(len(args), len(f.Type.Results)))
	for i, a := range args {
		if stack[i] = uint64(a); f.Type.Params[i].String() == "i32" {
			stack[i] = uint64(uint32(a))
		}
	}
	f.Call(w.t.Context(), w.in, stack)
	if len(f.Type.Results) == 0 {
		return 0
	}
	if f.Type.Results[0].String() == "i32" {
		return int64(int32(uint32(stack[0])))
	}
	return int64(stack[0])
}

// put writes s into the guest's memory and returns where.
func (w *wall) put(s string) (ptr, n int64) {
	w.t.Helper()
	if !w.in.Write(4096, []byte(s)) {
		w.t.Fatal("no memory")
	}
	return 4096, int64(len(s))
}

// result reads the last result in pieces of four bytes.
func (w *wall) result() string {
	w.t.Helper()
	var all []byte
	for {
		n := w.call("result_read", int64(len(all)), 64, 4)
		if n <= 0 {
			return string(all)
		}
		piece, _ := w.in.Read(64, uint32(n))
		all = append(all, piece...)
	}
}

func TestNativeInput(t *testing.T) {
	w := newWall(t, false, abi.Invocation{}, "hello")
	if n := w.call("input_len"); n != 5 {
		t.Errorf("input_len is %d", n)
	}
	tests := []struct {
		off, ptr, n int64
		want        int64
		bytes       string
	}{
		{0, 64, 5, 5, "hello"}, {0, 64, 100, 5, "hello"}, {3, 64, 1, 1, "l"}, {5, 64, 5, 0, ""}, {-1, 64, 5, 0, ""}, {0, 64, 0, 0, ""},
		{0, memoryBytes - 5, 5, 5, "hello"},
		{0, memoryBytes - 4, 5, badPointer, ""}, {0, -1, 5, badPointer, ""}, {0, 64, -1, badPointer, ""}, {0, memoryBytes - 5, 6, badPointer, ""},
		{9, -256, -1, badPointer, ""},
	}
	for _, tt := range tests {
		if n := w.call("input_read", tt.off, tt.ptr, tt.n); n != tt.want {
			t.Errorf("input_read%v is %d", []int64{tt.off, tt.ptr, tt.n}, n)
		}
		if b, _ := w.in.Read(uint32(tt.ptr), uint32(len(tt.bytes))); string(b) != tt.bytes {
			t.Errorf("input_read%v gave %q", []int64{tt.off, tt.ptr, tt.n}, b)
		}
	}
}

func TestE09_NativeOutput(t *testing.T) {
	w := newWall(t, false, abi.Invocation{Limits: abi.Limits{OutputBytes: 10}}, "")
	ptr, _ := w.put("0123456789abc")
	tests := []struct{ ptr, n, want int64 }{
		{-256, -1, badPointer}, {memoryBytes, 1, badPointer}, {0, memoryBytes + 1, badPointer}, {ptr, 11, tooMuch}, {0, memoryBytes, tooMuch},
		{memoryBytes, 0, 0}, {ptr, 4, 0}, {ptr + 4, 6, 0}, {ptr, 1, tooMuch}, {ptr, 0, 0},
	}
	for _, tt := range tests {
		if n := w.call("output_write", tt.ptr, tt.n); n != tt.want {
			t.Errorf("output_write(%d, %d) is %d, want %d", tt.ptr, tt.n, n, tt.want)
		}
	}
	if string(w.c.native.output) != "0123456789" {
		t.Errorf("output is %q", w.c.native.output)
	}
	allocated := testing.AllocsPerRun(100, func() { w.c.native.write(w.in, 0xffffff00, 0xffffffff, 10) })
	if allocated != 0 {
		t.Errorf("a write outside allocates %v times", allocated)
	}
}

func TestNativeAnswer(t *testing.T) {
	writes := func(list ...int) *call {
		w := newWall(t, false, abi.Invocation{Limits: abi.Limits{OutputBytes: 10}}, "")
		for _, n := range list {
			w.call("output_write", 4096, int64(n))
		}
		return w.c
	}
	tests := []struct {
		name   string
		c      *call
		status int32
		want   string // of the error
	}{
		{"whole", writes(4, 6), 0, ""},
		{"nothing", writes(), 0, ""},
		{"refused, and nothing instead", writes(11), 0, "more than 10 bytes"},
		{"refused, and only a status", writes(11), 1, "more than 10 bytes"},
		{"refused, and less instead", writes(11, 3), 0, ""},
		{"torn", writes(4, 11, 1), 0, "more than 10 bytes"},
		{"torn, with a status", writes(4, 11, 1), 1, "more than 10 bytes"},
	}
	for _, tt := range tests {
		_, err := tt.c.nativeAnswer(tt.status)
		if got := fmt.Sprint(err); got != tt.want && (err != nil || tt.want != "") {
			t.Errorf("%s: %s, want %q", tt.name, got, tt.want)
		}
	}
}

func TestNativeConfigGet(t *testing.T) {
	w := newWall(t, false, abi.Invocation{Config: map[string]string{"a": `"quoted" ✓`, "ключ": "v"}}, "")
	tests := []struct {
		key    string
		n      int64
		result string
	}{
		{`"a"`, 16, `"\"quoted\" ✓"`},
		{`"\u043a\u043b\u044e\u0447"`, 3, `"v"`},
		{`"b"`, 4, "null"},
		{`b`, -2, `{"error":{"code":"invalid","message":"config_get: the key is no JSON string"}}`},
		{`["a"]`, -2, `{"error":{"code":"invalid","message":"config_get: the key is no JSON string"}}`},
		{`"` + strings.Repeat("x", 5000) + `"`, -3, `{"error":{"code":"limit","message":"config_get: key of 5002 bytes, at most 4096"}}`},
	}
	for _, tt := range tests {
		if n := w.call("config_get", slices.Collect(pair(w.put(tt.key)))...); n != tt.n {
			t.Errorf("%.20s: %d, want %d", tt.key, n, tt.n)
		}
		if got := w.result(); got != tt.result {
			t.Errorf("%.20s: %s", tt.key, got)
		}
	}
	if n := w.call("config_get", -1, 3); n != -2 {
		t.Errorf("a key outside the memory: %d", n)
	}
}

func pair(ptr, n int64) func(func(int64) bool) { return slices.Values([]int64{ptr, n}) }

func TestNativeOperations(t *testing.T) {
	var asked []abi.Request
	answers := []abi.Response{{Body: []byte(`{"ok":true}`)}, abi.Refuse(abi.Denied, "no"), abi.Refuse(abi.Cancelled, "gone"), {Code: 99}, {Code: -1}}
	host := func(_ context.Context, r abi.Request) abi.Response {
		asked = append(asked, r)
		return answers[len(asked)-1]
	}
	w := newWall(t, false, abi.Invocation{Host: host, Limits: abi.Limits{HostCalls: 7}}, "")
	ptr, n := w.put(`{"url":"x"}`)
	steps := []struct {
		op     abi.Op
		ptr, n int64
		want   int64
		result string
	}{
		{abi.OpHTTP, ptr, n, 11, `{"ok":true}`},
		{abi.OpTool, ptr, n, -1, `{"error":{"code":"denied","message":"no"}}`},
		{abi.OpMCP, ptr, n, -5, `{"error":{"code":"cancelled","message":"gone"}}`},
		{abi.OpA2A, ptr, n, -4, `{"error":{"code":"unavailable","message":"a2a_send: the host answered with code 99"}}`},
		{abi.OpKVSet, ptr, n, -4, `{"error":{"code":"unavailable","message":"kv_set: the host answered with code -1"}}`},
		{abi.OpTracker, -1, 2, -2, `{"error":{"code":"invalid","message":"tracker_request: the request lies outside the module's memory"}}`},
		{abi.OpTracker, 0, -1, -3, `{"error":{"code":"limit","message":"tracker_request: request of 4294967295 bytes, at most 4194304"}}`},
		{abi.OpHTTP, ptr, n, -3, `{"error":{"code":"limit","message":"http_request: host calls are used up: at most 7 in one call (limits.host_calls)"}}`},
	}
	for _, s := range steps {
		if got := w.call(string(s.op), s.ptr, s.n); got != s.want {
			t.Errorf("%s: %d, want %d", s.op, got, s.want)
		}
		if got := w.result(); got != s.result {
			t.Errorf("%s: %s, want %s", s.op, got, s.result)
		}
	}
	if len(asked) != 5 || asked[1].Op != abi.OpTool || asked[0].CallID != 3 {
		t.Errorf("E07: the host was asked %d times: %+v", len(asked), asked)
	}
	if u := w.c.usage(); u.HostCalls != 8 {
		t.Errorf("usage %+v", u)
	}
	w.put("changed")
	if !bytes.Equal(asked[0].Body, []byte(`{"url":"x"}`)) {
		t.Error("E12: a request changed after it was read")
	}
}

func TestOperationAfterTheCallEnded(t *testing.T) {
	w := newWall(t, false, abi.Invocation{Host: func(context.Context, abi.Request) abi.Response {
		t.Error("the host was asked")
		return abi.Response{}
	}}, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stack := []uint64{0, 0}
	w.funcs["kv_get"].Call(ctx, w.in, stack)
	if int64(stack[0]) != -5 {
		t.Errorf("%d, want -5", int64(stack[0]))
	}
}

func TestNativeLog(t *testing.T) {
	var lines []string
	w := newWall(t, false, abi.Invocation{
		Limits: abi.Limits{LogLineBytes: 8},
		Log:    func(l abi.LogLevel, s string) { lines = append(lines, fmt.Sprint(l, " ", s)) },
	}, "")
	for level, line := range []string{"trace", "a\nb\tc", "ääääääää", "\xff\xfe", "e\u202e\x00\u200b"} {
		ptr, n := w.put(line)
		w.call("log", int64(level), ptr, n)
	}
	ptr, n := w.put("x")
	w.call("log", -5, ptr, n)
	w.call("log", 99, ptr, n)
	w.call("log", 2, 0, memoryBytes) // of 1 MiB, eight bytes are kept
	w.call("log", 2, -1, 5)
	want := []string{"0 trace", "1 a", "1 b c", "2 ää…", "3 ��", "4 e�…", "0 x", "4 x", "2 �…", "3 (a lo…"}
	if !slices.Equal(lines, want) {
		t.Errorf("got  %q\nwant %q", lines, want)
	}
}

func TestNativeProgress(t *testing.T) {
	var got []string
	w := newWall(t, false, abi.Invocation{Progress: func(m json.RawMessage) { got = append(got, string(m)) }}, "")
	tests := []struct {
		body string
		want int64
	}{
		{`{"progress":1}`, 0}, {`{"progress":0.5,"total":1,"message":"half"}`, 0},
		{`{}`, badPointer}, {`1`, badPointer}, {`{"progress":"1"}`, badPointer}, {`{"progress":1,"total":null}`, badPointer},
		{`{"progress":1,"message":2}`, badPointer}, {`{"progress":1,"progress":2}`, badPointer}, {`{"progress":1,"more":2}`, badPointer},
		{`{"progress":1,"message":"` + strings.Repeat("x", 5000) + `"}`, tooMuch}, {"", badPointer},
	}
	for _, tt := range tests {
		ptr, n := w.put(tt.body)
		if code := w.call("progress", ptr, n); code != tt.want {
			t.Errorf("%.40s: %d, want %d", tt.body, code, tt.want)
		}
	}
	if w.call("progress", -1, 5) != badPointer {
		t.Error("a report outside the memory")
	}
	if want := []string{tests[0].body, tests[1].body}; !slices.Equal(got, want) {
		t.Errorf("passed on %q", got)
	}
}
