package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if folder, err := jsCache(); err == nil && os.RemoveAll(folder) != nil {
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

type mod = dialecttest.Module

func steps(s ...dialecttest.Step) []dialecttest.Step { return s }

// load loads m in both dialects and runs f for each.
func load(t *testing.T, m mod, f func(*testing.T, *Guest)) {
	t.Helper()
	for _, v1 := range []bool{false, true} {
		m.V1 = v1
		t.Run(string(map[bool]Kind{false: Hutch, true: V1}[v1]), func(t *testing.T) { f(t, loaded(t, m, Options{})) })
	}
}

func loaded(t *testing.T, m mod, o Options) *Guest {
	t.Helper()
	g, err := Load(t.Context(), m.Bytes(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// answer calls the tool and returns its result, or its error.
func answer(t *testing.T, g *Guest, in abi.Invocation) string {
	t.Helper()
	out, _, err := g.Call(t.Context(), 7, in)
	if err != nil {
		var f *abi.Failure
		if !errors.As(err, &f) {
			t.Errorf("%v is no failure", err)
		}
		return err.Error()
	}
	return string(out)
}

func TestDescribe(t *testing.T) {
	load(t, mod{}, func(t *testing.T, g *Guest) {
		raw, err := g.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d, err := ParseDescription(g.Kind(), raw)
		if err != nil || len(d.Tools) != 1 || d.Tools[0].Name != "echo" {
			t.Errorf("%s: %+v, %v", raw, d, err)
		}
	})
}

func TestCallPassesTheCallOn(t *testing.T) {
	load(t, mod{}, func(t *testing.T, g *Guest) {
		in := abi.Invocation{Tool: `a"b`, Arguments: json.RawMessage(`{"n": 9007199254740993}`)}
		want := `{"content":[],"structuredContent":{"method":"tools/call","params":{"name":"a\"b","arguments":{"n": 9007199254740993}}}}`
		if got := answer(t, g, in); got != want {
			t.Errorf("got %s", got)
		}
		want = `{"content":[],"structuredContent":{"method":"tools/call","params":{"name":"","arguments":{}}}}`
		if got := answer(t, g, abi.Invocation{}); got != want {
			t.Errorf("without arguments: got %s", got)
		}
		if got := answer(t, g, abi.Invocation{Arguments: json.RawMessage(`"` + strings.Repeat("x", 200_000) + `"`)}); len(got) < 200_000 {
			t.Errorf("large: got %d bytes", len(got))
		}
	})
}

func TestFailures(t *testing.T) {
	tests := []struct {
		name string
		m    mod
		want string
	}{
		{"guest error", mod{Do: steps(dialecttest.Fail(1, "no such city"))}, "guest: no such city"},
		{"guest error in two lines", mod{Do: steps(dialecttest.Fail(-1, "a\x1b[31m\nb\xff"))}, "guest: a\ufffd[31m b\ufffd"},
		{"guest error without text", mod{Do: steps(dialecttest.Fail(3, ""))}, "guest: the tool returned 3 and no error text"},
		{"P06 long guest error", mod{Do: steps(dialecttest.Fail(1, strings.Repeat("ä", 4000)))}, "guest: " + strings.Repeat("ä", 2046) + "…"},
		{"trap", mod{Do: steps(dialecttest.Trap())}, "trap: trapped: unreachable"},
		{"exit", mod{Do: steps(dialecttest.Exit(2))}, "trap: left with exit code 2"},
		{"initializer traps", mod{Initialize: steps(dialecttest.Trap())}, "trap: trapped: unreachable"},
		{"start traps", mod{Start: steps(dialecttest.Trap())}, "trap: does not start: trapped: unreachable"},
		{"output over its limit", mod{Do: steps(dialecttest.Output(2 << 20))},
			"limit: result: more than 1048576 bytes (limits.output)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			load(t, tt.m, func(t *testing.T, g *Guest) {
				if got := answer(t, g, abi.Invocation{}); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

func TestE16_EveryCallStartsClean(t *testing.T) {
	load(t, mod{Do: steps(dialecttest.Count())}, func(t *testing.T, g *Guest) {
		for range 3 {
			if got := answer(t, g, abi.Invocation{}); got != `{"content":[],"structuredContent":{"n":1}}` {
				t.Errorf("got %s", got)
			}
		}
	})
}

func TestConcurrentCalls(t *testing.T) {
	load(t, mod{}, func(t *testing.T, g *Guest) {
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for j := range 10 {
					want := fmt.Sprintf(`{"i":%d,"j":%d}`, i, j)
					out, _, err := g.Call(t.Context(), uint64(i), abi.Invocation{Arguments: json.RawMessage(want)})
					if err != nil || !strings.Contains(string(out), want) {
						t.Errorf("%s, %v: no %s", out, err, want)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestConfig(t *testing.T) {
	g := loaded(t, mod{Do: steps(dialecttest.Config("city"))}, Options{})
	for city, want := range map[string]string{"": "null", `Bad "Aibling"`: `"Bad \"Aibling\""`} {
		config := map[string]string{"other": "x"}
		if city != "" {
			config["city"] = city
		}
		if got := answer(t, g, abi.Invocation{Config: config}); got != `{"content":[],"structuredContent":`+want+`}` {
			t.Errorf("native: got %s", got)
		}
	}
	g = loaded(t, mod{V1: true, Do: steps(dialecttest.Config("city"))}, Options{})
	if got := answer(t, g, abi.Invocation{Config: map[string]string{"city": "42"}}); got != `{"content":[],"structuredContent":42}` {
		t.Errorf("v1: got %s", got)
	}
	if got := answer(t, g, abi.Invocation{}); got != `{"content":[],"structuredContent":null}` {
		t.Errorf("v1: got %s", got)
	}
}

// A host that wants to know which keys are read answers for itself.
func TestConfigThatTheHostHas(t *testing.T) {
	for _, v1 := range []bool{false, true} {
		g := loaded(t, mod{V1: v1, Do: steps(dialecttest.Config(`the "city"`))}, Options{})
		for _, c := range []struct {
			code abi.Code
			body string
			want string
		}{{abi.OK, `"42"`, `42`}, {abi.OK, `null`, `null`}, {abi.Denied, `"42"`, `null`}, {abi.OK, `{}`, `null`}} {
			var asked []string
			host := func(_ context.Context, r abi.Request) abi.Response {
				asked = append(asked, string(r.Op)+" "+string(r.Body))
				return abi.Response{Code: c.code, Body: []byte(c.body)}
			}
			got := answer(t, g, abi.Invocation{Host: host, AskConfig: true, Config: map[string]string{`the "city"`: "7"}})
			want := c.want
			if !v1 && want == `42` {
				want = `"42"`
			}
			if got != `{"content":[],"structuredContent":`+want+`}` {
				t.Errorf("v1 %t, %v %s: got %s", v1, c.code, c.body, got)
			}
			if len(asked) != 1 || asked[0] != `config_get "the \"city\""` {
				t.Errorf("v1 %t: the host was asked %q", v1, asked)
			}
		}
	}
}

func TestGatedOperations(t *testing.T) {
	g := loaded(t, mod{Do: steps(dialecttest.Op(abi.OpKVGet, 2, `{"key":"a"}`))}, Options{Limits: abi.Limits{HostCalls: 2}})
	var asked []abi.Request
	host := func(_ context.Context, r abi.Request) abi.Response {
		asked = append(asked, r)
		return abi.Response{Body: []byte(`{"value":1}`)}
	}
	if got := answer(t, g, abi.Invocation{Host: host}); got != `{"content":[],"structuredContent":{"value":1}}` {
		t.Errorf("got %s", got)
	}
	if len(asked) != 2 || asked[0].CallID != 7 || asked[0].Op != abi.OpKVGet || string(asked[0].Body) != `{"key":"a"}` {
		t.Errorf("the host was asked %+v", asked)
	}
	want := `{"content":[],"structuredContent":{"error":{"code":"denied","message":"kv_get: nothing is granted to this module"}}}`
	if got := answer(t, g, abi.Invocation{}); got != want {
		t.Errorf("without a host: got %s", got)
	}
}

func TestDescribeHasNoCapability(t *testing.T) {
	g := loaded(t, mod{Describe: steps(dialecttest.Op(abi.OpHTTP, 1, `{}`))}, Options{})
	raw, err := g.Describe(t.Context())
	if err != nil || !strings.Contains(string(raw), `"code":"denied"`) {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestD23_DescriptionIsLimited(t *testing.T) {
	load(t, mod{Describe: steps(dialecttest.Output(MaxDescriptionBytes))}, func(t *testing.T, g *Guest) {
		_, err := g.Describe(t.Context())
		if want := "limit: description: more than 262144 bytes; describe fewer tools, or shorter"; err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
	})
}

func TestContextIsSeenBetweenSteps(t *testing.T) {
	load(t, mod{Do: steps(dialecttest.Sleep(time.Hour))}, func(t *testing.T, g *Guest) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := g.Call(ctx, 1, abi.Invocation{}); !errors.Is(err, &abi.Failure{Class: abi.ClassCancelled}) {
			t.Errorf("cancelled before: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, _, err := g.Call(ctx, 1, abi.Invocation{}); !errors.Is(err, &abi.Failure{Class: abi.ClassTimeout}) {
			t.Errorf("deadline while asleep: %v", err)
		}
	})
}

func TestClosedGuest(t *testing.T) {
	g := loaded(t, mod{}, Options{})
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := answer(t, g, abi.Invocation{}); got != "internal: the module is closed" {
		t.Errorf("got %s", got)
	}
}
