package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// block makes a block of s, as a plugin would.
func (w *wall) block(s string) int64 { return int64(w.c.extism.arena.put([]byte(s))) }

// text returns what a block holds.
func (w *wall) text(at int64) string { return string(w.c.extism.arena.block(uint64(at))) }

func TestExtismMemory(t *testing.T) {
	w := newWall(t, true, abi.Invocation{}, "")
	at := w.call("alloc", 12)
	w.call("store_u64", at, 0x0807060504030201)
	w.call("store_u8", at+8, 0x109)
	if v := w.call("load_u64", at); v != 0x0807060504030201 {
		t.Errorf("load_u64 %#x", v)
	}
	if v := w.call("load_u8", at+8); v != 9 {
		t.Errorf("load_u8 %#x", v)
	}
	for offset, want := range map[int64]int64{at: 12, at + 8: 0, 0: 0, -1: 0} {
		if w.call("length", offset) != want || w.call("length_unsafe", offset) != want {
			t.Errorf("length of %d", offset)
		}
	}
	w.call("free", at)
	if w.call("free", at); w.call("length", at) != 0 || w.call("alloc", 0) != 0 {
		t.Error("freed, or empty, and has a length")
	}
	if _, err := w.c.extismAnswer(0); err != nil {
		t.Error(err)
	}
}

func TestExtismInput(t *testing.T) {
	w := newWall(t, true, abi.Invocation{}, "0123456789")
	if n := w.call("input_length"); n != 10 {
		t.Errorf("length %d", n)
	}
	at := w.call("input_offset")
	if again := w.call("input_offset"); again != at || w.text(at) != "0123456789" {
		t.Errorf("offset %d, then %d", at, again)
	}
	for offset, want := range map[int64]int64{0: 0x3736353433323130, 8: 0x3938, 10: 0, -1: 0, math.MaxInt64: 0} {
		if v := w.call("input_load_u64", offset); v != want {
			t.Errorf("input_load_u64(%d) %#x", offset, v)
		}
		if v := w.call("input_load_u8", offset); v != want&0xff {
			t.Errorf("input_load_u8(%d) %#x", offset, v)
		}
	}
	if w := newWall(t, true, abi.Invocation{}, ""); w.call("input_offset") != 0 {
		t.Error("no input has an offset")
	}
}

func TestExtismAnswer(t *testing.T) {
	limits := abi.Limits{OutputBytes: 10, MemoryBytes: 1 << 20}
	tests := []struct {
		name   string
		do     func(*wall)
		status int32
		want   string // the output, or the error
	}{
		{"nothing", func(*wall) {}, 0, ""},
		{"a block", func(w *wall) { w.call("output_set", w.block("answer"), 6) }, 0, "answer"},
		{"part of one", func(w *wall) { w.call("output_set", w.block("answer")+1, 2) }, 0, "ns"},
		{"the last one counts", func(w *wall) {
			w.call("output_set", -1, -1)
			w.call("output_set", w.block("answer"), 6)
		}, 0, "answer"},
		{"freed afterwards", func(w *wall) {
			at := w.block("answer")
			w.call("output_set", at, 6)
			w.call("free", at)
		}, 0, "answer"},
		{"an error", func(w *wall) { w.call("error_set", w.block("broken")) }, 1, "guest: broken"},
		{"an error with status 0", func(w *wall) {
			w.call("output_set", w.block("answer"), 6)
			w.call("error_set", w.block("broken"))
		}, 0, "guest: broken"},
		{"an error taken back", func(w *wall) {
			w.call("error_set", w.block("broken"))
			w.call("error_set", 0)
		}, 0, ""},
		{"an error at an unknown offset", func(w *wall) { w.call("error_set", 12345) }, 2, "guest: the tool returned 2 and no error text"},
		{"E09 output outside", func(w *wall) { w.call("output_set", 0xffffff00, 0xffffffff) }, 0,
			"trap: output_set: 4294967295 bytes at 4294967040 lie outside the tool's Extism memory"},
		{"E09 output around the end", func(w *wall) { w.call("output_set", -8, 16) }, 0,
			"trap: output_set: 16 bytes at 18446744073709551608 lie outside the tool's Extism memory"},
		{"output never written", func(w *wall) { w.call("output_set", 16, 5) }, 0,
			"trap: output_set: 5 bytes at 16 lie outside the tool's Extism memory"},
		{"output over its limit", func(w *wall) { w.call("output_set", w.block("12345678901"), 11) }, 0, "more than 10 bytes"},
		{"load outside", func(w *wall) { w.call("load_u64", 0); w.call("load_u8", -1) }, 0,
			"trap: load: 8 bytes at 0 lie outside the tool's Extism memory"},
		{"store outside", func(w *wall) { w.call("store_u8", w.block("1234567")+8, 1) }, 0,
			"trap: store: 1 bytes at 24 lie outside the tool's Extism memory"},
		{"store into what was refused", func(w *wall) { w.call("store_u8", w.call("alloc", 1<<21), 1) }, 0,
			"limit: the tool asked for 2097152 more bytes of Extism memory; it has 0 blocks, and at most 1048576 bytes (limits.memory)"},
		{"output in what was refused", func(w *wall) { w.call("output_set", w.call("alloc", -1), 5) }, 0,
			"limit: the tool asked for 18446744073709551615 more bytes of Extism memory; it has 0 blocks, and at most 1048576 bytes (limits.memory)"},
		{"refused, and less instead", func(w *wall) {
			w.call("alloc", 1<<21)
			w.call("output_set", w.block("answer"), 6)
		}, 0, "answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWall(t, true, abi.Invocation{Limits: limits}, "")
			tt.do(w)
			out, err := w.c.extismAnswer(tt.status)
			got := string(out)
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestExtismInputDoesNotFit(t *testing.T) {
	w := newWall(t, true, abi.Invocation{Limits: abi.Limits{MemoryBytes: 1 << 16}}, strings.Repeat("x", 1<<17))
	if at := w.call("input_offset"); at != 0 {
		t.Errorf("the input is at %d", at)
	}
	want := "limit: the input of 131072 bytes does not fit the tool's Extism memory of 65536 bytes (limits.memory)"
	if _, err := w.c.extismAnswer(0); err == nil || err.Error() != want {
		t.Errorf("no input, and the answer counts: %v", err)
	}
}

func TestExtismConfigAndVars(t *testing.T) {
	w := newWall(t, true, abi.Invocation{Config: map[string]string{"city": "Ulm"}}, "")
	if got := w.text(w.call("config_get", w.block("city"))); got != "Ulm" {
		t.Errorf("config %q", got)
	}
	if w.call("config_get", w.block("none")) != 0 || w.call("config_get", 5) != 0 {
		t.Error("a value for nothing")
	}
	get := func(name string) string { return w.text(w.call("var_get", w.block(name))) }
	set := func(name, value string) { w.call("var_set", w.block(name), w.block(value)) }
	set("a", "1")
	set("a", "22")
	set("b", "3")
	if get("a") != "22" || get("b") != "3" || get("c") != "" || w.c.extism.varBytes != 5 {
		t.Errorf("variables %q, %d bytes", w.c.extism.vars, w.c.extism.varBytes)
	}
	w.call("var_set", w.block("a"), 0)
	w.call("var_set", w.block("c"), 0)
	if get("a") != "" || w.c.extism.varBytes != 2 {
		t.Errorf("variables %q, %d bytes", w.c.extism.vars, w.c.extism.varBytes)
	}
	at := w.block("value")
	w.call("var_set", w.block("d"), at)
	w.call("store_u8", at, 'V')
	if get("d") != "value" {
		t.Error("E12: a variable changed after it was set")
	}
}

func TestExtismVarLimits(t *testing.T) {
	const want = "limit: the tool keeps more than 1024 variables or 1048576 bytes in them"
	big := newWall(t, true, abi.Invocation{}, "")
	for range 10 { // the same variable takes its room once
		big.call("var_set", big.block("a"), big.block(strings.Repeat("x", maxVarBytes-1)))
	}
	if _, err := big.c.extismAnswer(0); err != nil {
		t.Error(err)
	}
	big.call("var_set", big.block("b"), big.block("x"))
	if _, err := big.c.extismAnswer(0); err == nil || err.Error() != want {
		t.Error(err)
	}
	many := newWall(t, true, abi.Invocation{}, "")
	for i := range maxVars + 1 {
		if _, err := many.c.extismAnswer(0); err != nil {
			t.Fatal(err)
		}
		many.call("var_set", many.block(fmt.Sprint(i)), many.block("x"))
	}
	if _, err := many.c.extismAnswer(0); err == nil || err.Error() != want {
		t.Error(err)
	}
}

func TestExtismLog(t *testing.T) {
	var lines []string
	w := newWall(t, true, abi.Invocation{
		Limits: abi.Limits{LogLineBytes: 8},
		Log:    func(l abi.LogLevel, s string) { lines = append(lines, fmt.Sprint(l, " ", s)) },
	}, "")
	if level := w.call("get_log_level"); level != 0 {
		t.Errorf("level %d", level)
	}
	for _, name := range []string{"log_trace", "log_debug", "log_info", "log_warn", "log_error"} {
		at := w.block(name + " and more")
		w.call(name, at)
		if w.call("length", at) != 0 {
			t.Errorf("%s left its block", name)
		}
	}
	w.call("log_info", 12345)
	if want := []string{"0 log_t…", "1 log_d…", "2 log_i…", "3 log_w…", "4 log_e…", "2 "}; !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
	if w := newWall(t, true, abi.Invocation{}, ""); w.call("get_log_level") != math.MaxInt32 {
		t.Error("a level though nobody listens")
	}
}

func TestExtismHTTP(t *testing.T) {
	var lines []string
	var asked []string
	answers := []abi.Response{
		{Body: []byte(`{"status":201,"headers":{"Set-Cookie":["a","b"],"X":["y"]},"body":"hello"}`)},
		{Body: []byte(`{"status":200,"bodyBase64":"//4="}`)},
		abi.Refuse(abi.Denied, "http_request: example.org is not granted"),
		{Body: []byte(`no json`)},
		{Code: abi.Unavailable},
	}
	w := newWall(t, true, abi.Invocation{
		Host: func(_ context.Context, r abi.Request) abi.Response {
			asked = append(asked, string(r.Op)+" "+string(r.Body))
			return answers[len(asked)-1]
		},
		Log: func(_ abi.LogLevel, s string) { lines = append(lines, s) },
	}, "")
	tests := []struct {
		request, body, asked        string
		status                      int64
		headers, response, loggedOf string
	}{
		{`{"url":"https://a/","method":"post","headers":{"X-A":"b"}}`, "text", `{"method":"POST","url":"https://a/","headers":{"X-A":"b"},"body":"text"}`,
			201, `{"set-cookie":"a,b","x":"y"}`, "hello", ""},
		{`{"url":"https://b/"}`, "\xff", `{"method":"GET","url":"https://b/","bodyBase64":"/w=="}`, 200, "", "\xff\xfe", ""},
		{`{"url":"https://c/"}`, "", `{"method":"GET","url":"https://c/"}`, 0, "", "", "http_request: example.org is not granted"},
		{`{"url":"https://d/"}`, "", `{"method":"GET","url":"https://d/"}`, 0, "", "", "http_request: ok, without a reason"},
		{`{"url":"https://e/"}`, "", `{"method":"GET","url":"https://e/"}`, 0, "", "", "http_request: unavailable, without a reason"},
	}
	for i, tt := range tests {
		at := w.call("http_request", w.block(tt.request), w.block(tt.body))
		if got := w.text(at); got != tt.response || asked[i] != "http_request "+tt.asked {
			t.Errorf("%s: asked %s, got %q", tt.request, asked[i], got)
		}
		if status, headers := w.call("http_status_code"), w.text(w.call("http_headers")); status != tt.status || headers != tt.headers {
			t.Errorf("%s: status %d, headers %s", tt.request, status, headers)
		}
		if tt.loggedOf != "" && lines[len(lines)-1] != tt.loggedOf {
			t.Errorf("%s: logged %q", tt.request, lines)
		}
	}
	if w.call("http_request", w.block("no json"), 0) != 0 || w.call("http_status_code") != 0 || len(asked) != len(tests) {
		t.Error("a request that is no JSON was passed on")
	}
	if _, err := w.c.extismAnswer(0); err != nil {
		t.Errorf("the call fails: %v", err)
	}
}

// E09: what a function has no use for because of its size is not copied, and nobody
// reads megabytes of JSON.
func TestE09_ExtismBlocksThatAreTooLarge(t *testing.T) {
	const size, at = 32 << 20, arenaStart
	burned := func(more ...dialecttest.Step) (int64, string) {
		m := mod{V1: true, Do: append(steps(dialecttest.Import(extismModule, "alloc", "l", "l", size)), more...)}
		lines := []string{""}
		_, usage, err := loaded(t, m, Options{}).Call(t.Context(), 1, abi.Invocation{Log: func(_ abi.LogLevel, s string) { lines = append(lines, s) }})
		if f := (*abi.Failure)(nil); errors.As(err, &f) && f.Class == abi.ClassTrap {
			t.Error(err)
		}
		return usage.Fuel, lines[len(lines)-1]
	}
	alone, _ := burned()
	call := func(name, params, results string, args ...int64) dialecttest.Step {
		return dialecttest.Import(extismModule, name, params, results, args...)
	}
	const refused = "http_request: request of %d bytes with a body of %d, at most 262144 with 4194304"
	for _, tt := range []struct {
		name, logged string
		step         dialecttest.Step
	}{
		{"config_get", "", call("config_get", "l", "l", at)},
		{"var_get", "", call("var_get", "l", "l", at)},
		{"name in var_set", "", call("var_set", "ll", "", at, 0)},
		{"value in var_set", "", call("var_set", "ll", "", 0, at)},
		{"request", fmt.Sprintf(refused, size, 0), call("http_request", "ll", "l", at, 0)},
		{"body", fmt.Sprintf(refused, 0, size), call("http_request", "ll", "l", 0, at)},
	} {
		got, logged := burned(tt.step)
		if more := got - alone; more > 1000 || logged != tt.logged {
			t.Errorf("%s: burned %d more, logged %q", tt.name, more, logged)
		}
	}
}

func TestExtismHTTPWithoutAGrant(t *testing.T) {
	var lines []string
	g := loaded(t, mod{V1: true, Do: steps(dialecttest.Op(abi.OpHTTP, 1, `{"url":"https://a/"}`))}, Options{})
	got := answer(t, g, abi.Invocation{Log: func(_ abi.LogLevel, s string) { lines = append(lines, s) }})
	if got != `{"content":[],"structuredContent":null}` || !slices.Equal(lines, []string{"http_request: nothing is granted to this module"}) {
		t.Errorf("got %s, logged %q", got, lines)
	}
}

func TestOldServlet(t *testing.T) {
	w := newWall(t, true, abi.Invocation{Config: map[string]string{"k": "v"}}, "")
	user := extismUser()
	for _, f := range user.Funcs {
		stack := []uint64{uint64(w.block("k"))}
		f.Call(t.Context(), w.in, stack)
		if f.Name == "config_get" && w.text(int64(stack[0])) != "v" {
			t.Error("no configuration")
		}
	}
}

func TestInputOverItsLimit(t *testing.T) {
	load(t, mod{}, func(t *testing.T, g *Guest) {
		in := abi.Invocation{Tool: "a", Limits: abi.Limits{InputBytes: 100}, Arguments: json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)}
		_, _, err := g.Call(t.Context(), 1, in)
		if want := "limit: input of 260 bytes, at most 100 (limits.input)"; err == nil || err.Error() != want || !errors.Is(err, &abi.Failure{Class: abi.ClassLimit}) {
			t.Errorf("got %v", err)
		}
	})
}
