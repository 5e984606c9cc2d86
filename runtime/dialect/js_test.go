package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// jsFile is where make puts the engine, for cmd/hutch to embed it.
func jsFile() string { return filepath.Join("..", "..", "cmd", "hutch", "javascript", "qjs.wasm") }

// jsEngine is the engine; without one, the test is skipped.
func jsEngine(t testing.TB) []byte {
	t.Helper()
	engine, err := os.ReadFile(jsFile())
	switch {
	case err == nil:
	case os.Getenv("HUTCH_REQUIRE") == "all":
		t.Fatalf("run make javascript: %v", err)
	default:
		t.Skipf("run make javascript: %v", err)
	}
	if err := CheckEngine(engine); err != nil {
		t.Fatal(err)
	}
	return engine
}

// jsCache is where the engine's code is kept once it was compiled: that is slow.
var jsCache = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "hutch-js-") })

// jsFuel is what the guests of tests may burn.
const jsFuel = 3_000_000_000

// jsGuest is a guest with a script that is called tool.js.
func jsGuest(t testing.TB, text string) *Guest {
	t.Helper()
	wasm, err := WithScript(jsEngine(t), "tool.js", text)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := jsCache()
	if err != nil {
		t.Fatal(err)
	}
	g, err := Load(t.Context(), wasm, Options{CacheDir: folder, Limits: abi.Limits{MemoryBytes: 16 << 20, Fuel: jsFuel}})
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

// running is a script with a tool t whose function has this body.
func running(body string) string {
	return "tool({ name: 't', description: 'Does.', run(args) {\n" + body + "\n} });"
}

func jsText(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // strings always encode
	return `{"content":[{"type":"text","text":` + strings.TrimSpace(b.String()) + `}]}`
}

func jsError(text string) string {
	return strings.TrimSuffix(jsText(text), "}") + `,"isError":true}`
}

func TestJSDescribe(t *testing.T) {
	g := jsGuest(t, `
		const schema = { type: "object", properties: { n: { type: "number" } } };
		tool({ name: "a", title: "A", description: "Does a.", inputSchema: schema, outputSchema: schema, annotations: { readOnlyHint: true }, run() {} });
		tool({ name: "b", description: "Does b.", run() {} });
		module({ version: "1.2.3", requests: { kv: { reason: "It keeps." } } });
		schema.type = "changed later";`)
	raw, err := g.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const schema = `{"type":"object","properties":{"n":{"type":"number"}}}`
	want := `{"tools":[{"name":"a","title":"A","description":"Does a.","inputSchema":` + schema + `,"outputSchema":` + schema +
		`,"annotations":{"readOnlyHint":true}},{"name":"b","description":"Does b.","inputSchema":{"type":"object","properties":{},"additionalProperties":false}}],` +
		`"requests":{"kv":{"reason":"It keeps."}},"version":"1.2.3"}`
	if string(raw) != want {
		t.Errorf("got %s\nwant %s", raw, want)
	}
	d, err := ParseDescription(g.Kind(), raw)
	if err != nil || g.Kind() != JS || len(d.Tools) != 2 || d.Version != "1.2.3" || d.Requests["kv"] == nil {
		t.Errorf("%s: %+v, %v", g.Kind(), d, err)
	}
}

// What an author reads whose file is wrong: where, and what.
func TestJSFileErrors(t *testing.T) {
	tool := func(members string) string { return "\n  tool({ " + members + " });" }
	for script, want := range map[string]string{
		"\n\nlet x = ;":                     "tool.js:3:1: SyntaxError: unexpected token in expression: ';', in: let x = ;",
		"let a = 1;\nif (a {\n}":            "tool.js:2:1: SyntaxError: Unexpected token '{', in: if (a {",
		"\n  const x = await 1;":            "tool.js:2:1: SyntaxError: expecting ';'; await works in async functions only: const x = await 1;",
		"import x from 'y';":                "tool.js:1:1: SyntaxError: Unexpected identifier 'x'; a tool is one file, which imports nothing: import x from 'y';",
		"\nexport default 1;":               "tool.js:2:1: SyntaxError: unsupported keyword: export; a tool exports nothing: it calls tool({...}): export default 1;",
		"\n  nothing.at.all();":             "tool.js:2:3: ReferenceError: nothing is not defined",
		"x = 1;":                            "tool.js:1:1: ReferenceError: x is not defined",
		"throw new Error('no\\nway');":      "tool.js:1:10: Error: no way",
		"throw 'text';":                     `it threw "text"`,
		"throw null;":                       "it threw a value that is no Error: null",
		"throw Symbol('s');":                "it threw a value that is no Error: Symbol(s)",
		"throw { toString() { throw 1 } }":  "it threw a value that cannot be shown",
		"let a;":                            "tool.js defines no tool: call tool({name, description, run}) in it",
		tool("name: 'a'"):                   `tool.js:2:3: TypeError: tool "a": description is missing: a sentence by which a model chooses it`,
		tool("description: 'a'"):            `tool.js:2:3: TypeError: tool: name is missing: a text such as "greet"`,
		tool("name: 'a', description: 'b'"): `tool.js:2:3: TypeError: tool "a": run is missing: the function that gets the arguments`,
		tool("name: 'a', desc: 'b'"):        `tool.js:2:3: TypeError: tool: unknown property "desc"; known are name, title, description, inputSchema, outputSchema, annotations, run`,
		tool("name: 'a', description: 'b', run() {}, title: NaN"): `tool.js:2:3: TypeError: tool "a": "title" is NaN, which JSON has not`,
		"module({ versoin: '1' });":                               `tool.js:1:1: TypeError: module: unknown property "versoin"; known are version, requests`,
		"module({});\nmodule({});":                                "tool.js:2:1: TypeError: module: called twice",
		"tool(1)":                                                 "tool.js:1:1: TypeError: tool takes an object",
		running("") + running(""):                                 `tool.js:3:6: TypeError: tool "t": defined twice`,
		"for (;;);":                                               "more than 3000000000 units of fuel were burned (limits.fuel)",
		"const f = () => f() + 1; f();":                           "stack overflow: calls are nested too deeply (the engine's stack limit)",
		"const a = []; for (;;) a.push(new Array(1000).fill('x'))": "memory of 168",
		"new Promise((_, no) => no(new Error('x')));":              "tool.js:1:30: Error: x",
	} {
		_, err := jsGuest(t, script).Describe(t.Context())
		var f *abi.Failure
		if !errors.As(err, &f) || !strings.HasPrefix(f.Text, want) {
			t.Errorf("%s\n got %v\nwant %s", script, err, want)
		}
	}
}

func TestJSResults(t *testing.T) {
	mistake := "internal error in tool t: "
	for body, want := range map[string]string{
		`return "Hello, " + args.name + "!\0";`: jsText("Hello, World!\x00"),
		`return "";`:                            jsText(""),
		`return "\ud800";`:                      jsText("\ufffd"),
		`return { a: [1, null] };`:              strings.TrimSuffix(jsText(`{"a":[1,null]}`), "}") + `,"structuredContent":{"a":[1,null]}}`,
		`return [1, 2];`:                        jsText("[1,2]"),
		`return 5;`:                             jsText("5"),
		`return result("text", { a: 1 });`:      strings.TrimSuffix(jsText("text"), "}") + `,"structuredContent":{"a":1}}`,
		`return result([{ type: "image", data: "AA==", mimeType: "image/png" }]);`: `{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`,
		`return Promise.resolve("later");`:                                         jsText("later"),
		`return (async () => { await null; return "async"; })();`:                  jsText("async"),
		`return new Promise((yes) => setTimeout(() => yes("timer"), 2));`:          jsText("timer"),
		`throw new Error("no such city");`:                                         jsError("no such city"),
		`return Promise.reject(new Error("no such city"));`:                        jsError("no such city"),
		`class Own extends Error {}; throw new Own("own");`:                        jsError("own"),
		`return args.a.b;`:                      jsError(mistake + "tool.js:1:1: TypeError: cannot read property 'b' of undefined"),
		`let x = 1;` + "\n" + ` args.none();`:   jsError(mistake + "tool.js:3:7: TypeError: not a function"),
		`null_();`:                              jsError(mistake + "tool.js:2:1: ReferenceError: null_ is not defined"),
		`throw "text";`:                         jsError(mistake + `it threw "text"`),
		`throw { get message() { throw 1; } };`: jsError(mistake + "it threw a value that is no Error: [object Object]"),
		`const e = new Error(); Object.defineProperty(e, "message", { get() { throw 1; } }); throw e;`:      jsError(mistake + "it threw a value that cannot be shown"),
		`const e = new TypeError("x"); Object.defineProperty(e, "stack", { get() { throw 1; } }); throw e;`: jsError(mistake + "it threw a value that cannot be shown"),
		``:                                 jsError(mistake + "TypeError: it returned undefined; return a string, or a value that JSON has"),
		`return null;`:                     jsError(mistake + "TypeError: it returned null; return a string, or a value that JSON has"),
		`return { a: [NaN] };`:             jsError(mistake + `TypeError: result: "0" is NaN, which JSON has not`),
		`return -Infinity;`:                jsError(mistake + `TypeError: result: it is -Infinity, which JSON has not`),
		`return { a: 1n };`:                jsError(mistake + `TypeError: result: "a" is a BigInt, which JSON has not; make a number or a string of it`),
		`return () => 1;`:                  jsError(mistake + `TypeError: result: it is a function, which JSON has not`),
		`const a = {}; a.a = a; return a;`: jsError(mistake + `TypeError: circular reference`),
		`return { get a() { throw new Error("got"); } };`:                                   jsError("got"),
		`return { toJSON() { throw new Error("json"); } };`:                                 jsError("json"),
		`return new Proxy({}, { ownKeys() { throw new Error("keys"); } });`:                 jsError("keys"),
		`return new Promise(() => {});`:                                                     jsError(mistake + "InternalError: the promise that it returned never settles: nothing is left that could"),
		`return new Promise((yes) => { yes("first"); yes("second"); throw new Error(); });`: jsText("first"),
		`return { then(yes) { yes("thenable"); } };`:                                        strings.TrimSuffix(jsText(`{}`), "}") + `,"structuredContent":{}}`,
		`return eval("1 + 1") + new Function("return 1")();`:                                jsText("3"),
		`eval("(");`:                  jsError(mistake + "tool.js:2:1: SyntaxError: unexpected token in expression: ''"),
		`return "x".repeat(2 << 20);`: jsError("the result has about 2097191 bytes, more than the host takes; ask for less"),
		`return typeof std + typeof os + typeof gc + typeof print;`:                jsText("undefinedundefinedundefinedundefined"),
		`return import("qjs:std").then((s) => String(s.loadFile("/etc/passwd")));`: jsText("null"),
		`return import("./x.js").then(() => "there", () => "none");`:               jsText("none"),
		`return [typeof tool, typeof module, typeof fetch, typeof kv.get, typeof progress, typeof console.log, typeof Refusal, typeof config_get, typeof log, typeof result].join();`: jsText(strings.Repeat("function,", 9) + "function"),
	} {
		g := jsGuest(t, running(body))
		got := answer(t, g, abi.Invocation{Tool: "t", Arguments: json.RawMessage(`{"name":"World"}`)})
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
		if _, err := ParseResult(JS, []byte(got)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	if got := answer(t, jsGuest(t, running("")), abi.Invocation{Tool: "u"}); got != `guest: no tool "u" in this module` {
		t.Errorf("got %s", got)
	}
}

// What a script does to the objects that it shares with the prelude is its own loss,
// and ends with its call.
func TestJSPollution(t *testing.T) {
	const undo = `tool({ name: "t", description: "Does.", run() { return { a: [1] }; } });`
	want := strings.TrimSuffix(jsText(`{"a":[1]}`), "}") + `,"structuredContent":{"a":[1]}}`
	for _, script := range []string{
		`JSON.stringify = JSON.parse = () => "{}";`,
		`Array.prototype.push = Array.prototype.join = Array.prototype[Symbol.iterator] = () => { throw 1; };`,
		`String.prototype.charCodeAt = String.prototype.replaceAll = String.prototype.indexOf = () => { throw 1; };`,
		`Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => { throw 1; };`,
		`Promise.prototype.then = () => { throw 1; }; globalThis.Promise = undefined;`,
		`Object.defineProperty(Object.prototype, "run", { get() { throw 1; } });`,
		`Object.keys = Object.entries = Object.create = () => { throw 1; };`,
		`globalThis.Error = globalThis.TypeError = globalThis.String = globalThis.Uint8Array = undefined;`,
		`for (const name of ["log", "console", "result", "module", "fetch", "kv"]) globalThis[name] = null;`,
		`const log = 1, fetch = 2, kv = 3, module = 4, result = 5, progress = 6;`,
		`Error.prepareStackTrace = () => { throw 1; }; Error.stackTraceLimit = 0;`,
	} {
		g := jsGuest(t, undo+script)
		for range 2 {
			if got := answer(t, g, abi.Invocation{Tool: "t"}); got != want {
				t.Errorf("%s: got %s", script, got)
			}
		}
	}
	for _, script := range []string{ // these change what every object is
		`Object.prototype.toJSON = () => { throw new Error("mine"); };`,
		`Object.freeze(Object.prototype); Object.prototype.__proto__ = null;`,
		`Object.defineProperty(Object.prototype, "0", { set() { throw 1; } });`,
		`Array.prototype.toJSON = function () { return 1; };`,
	} {
		got := answer(t, jsGuest(t, undo+script), abi.Invocation{Tool: "t"})
		if _, err := ParseResult(JS, []byte(got)); err != nil && !strings.HasPrefix(got, "guest: ") {
			t.Errorf("%s: got %s", script, got)
		}
	}
}

func TestJSCallsAreFresh(t *testing.T) {
	g := jsGuest(t, `let n = 0;`+running(`globalThis.n = (globalThis.n ?? 0) + 1; return String(++n + globalThis.n);`))
	for range 3 {
		if got := answer(t, g, abi.Invocation{Tool: "t"}); got != jsText("2") {
			t.Errorf("got %s", got)
		}
	}
}

// What no script survives: each ends with what is to blame.
func TestJSHostile(t *testing.T) {
	const stack = "limit: stack overflow: calls are nested too deeply (the engine's stack limit)"
	const fuel = "limit: more than 3000000000 units of fuel were burned (limits.fuel)"
	var names []string
	for i := range 3000 {
		names = append(names, fmt.Sprintf("v%d = n", i))
	}
	for body, want := range map[string]string{
		`for (;;);`:                   fuel,
		`for (;;) Promise.resolve();`: fuel,
		`const f = () => Promise.resolve().then(f); return f();`:                                                            "limit: memory of ",
		`/^(a+)+$/.test("a".repeat(40) + "b");`:                                                                             fuel,
		`const f = () => f() + 1; f();`:                                                                                     stack,
		`try { const f = () => f() + 1; f(); } catch {}`:                                                                    stack,
		`return JSON.parse("[".repeat(100000));`:                                                                            stack,
		`let a = []; for (let i = 0; i < 20000; i++) a = [a]; return a.toString();`:                                         stack,
		`const f = (n) => { let ` + strings.Join(names, ", ") + `; return n === 0 ? v5 : f(n - 1) + v7; }; return f(1000);`: stack,
		`let s = "x"; for (;;) s += s;`:                                                                                     "limit: memory of ",
		`const all = []; for (;;) all.push(new Uint8Array(1 << 16));`:                                                       "limit: memory of ",
		`try { const all = []; for (;;) all.push("x".repeat(1000)); } catch {} return "caught";`:                            jsText("caught"),
		`return import("qjs:std").then((s) => s.exit(3));`:                                                                  "trap: left with exit code 3",
	} {
		got := answer(t, jsGuest(t, running(body)), abi.Invocation{Tool: "t"})
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s\n got %.300s\nwant %s", body, got, want)
		}
	}
}

// A recursion that a tool may well have works, and one just before the end of the
// stack gives the right result or none.
func TestJSRecursion(t *testing.T) {
	g := jsGuest(t, running(`const f = (n) => n === 0 ? 0 : 1 + f(n - 1); return f(args.n);`))
	for n := 250; n < 16_000; n *= 2 {
		got := answer(t, g, abi.Invocation{Tool: "t", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))})
		if got != jsText(fmt.Sprint(n)) && (n <= 1000 || !strings.HasPrefix(got, "limit: stack overflow")) {
			t.Errorf("%d: got %s", n, got)
		}
	}
}

func TestJSEndsAtItsDeadline(t *testing.T) {
	g := jsGuest(t, running(`for (;;);`))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	in := abi.Invocation{Tool: "t", Limits: abi.Limits{Fuel: 1e15}}
	if _, _, err := g.Call(ctx, 1, in); !errors.Is(err, &abi.Failure{Class: abi.ClassTimeout}) {
		t.Errorf("got %v", err)
	}
}

// host answers gated operations from a table of their bodies.
func (answers jsAnswers) host(_ context.Context, r abi.Request) abi.Response {
	found, ok := answers[string(r.Op)+" "+string(r.Body)]
	if !ok {
		return abi.Refuse(abi.Denied, "nobody expects "+string(r.Op)+" "+string(r.Body))
	}
	if text, refused := strings.CutPrefix(found, "!"); refused {
		return abi.Refuse(abi.Limit, text)
	}
	return abi.Response{Body: []byte(found)}
}

type jsAnswers map[string]string

func TestJSHost(t *testing.T) {
	answers := jsAnswers{
		`http_request {"url":"https://a.example/"}`:                                                                                                         `{"status":200,"headers":{"X-A":["1","2"]},"body":"page\u0000ä"}`,
		`http_request {"url":"https://a.example/b"}`:                                                                                                        `{"status":404,"url":"https://b.example/","bodyBase64":"AP/+"}`,
		`http_request {"url":"https://a.example/p","method":"POST","headers":{"a":"1"},"body":"text"}`:                                                      `{"status":204}`,
		`http_request {"url":"https://a.example/p","method":"PUT","bodyBase64":"AAH/"}`:                                                                     `{"status":204}`,
		`http_request {"url":"https://a.example/j","headers":{"Accept":"application/json"}}`:                                                                `{"status":200,"body":"{\"a\":1}"}`,
		`http_request {"url":"https://a.example/n","headers":{"Accept":"application/json"}}`:                                                                `{"status":500,"body":"broken"}`,
		`http_request {"url":"https://a.example/s","method":"POST","headers":{"Accept":"application/json","Content-Type":"application/json"},"body":"[1]"}`: `{"status":200,"body":"<html>"}`,
		`http_request {"url":"https://a.example/l"}`:                                                                                                        `!too large`,
		`kv_get {"key":"a"}`:                                   `{"found":true,"value":"{\"n\":1}","version":7,"expires":"2030-01-01T00:00:00Z"}`,
		`kv_get {"key":"none"}`:                                `{"found":false,"value":""}`,
		`kv_get {"key":"b","base64":true}`:                     `{"found":true,"value":"AP/+","version":1}`,
		`kv_get {"prefix":""}`:                                 `{"keys":["a","b"],"more":true}`,
		`kv_get {"prefix":"","after":"b"}`:                     `{"keys":["c"]}`,
		`kv_set {"key":"a","value":"{\"n\":2}"}`:               `{"stored":true,"version":8}`,
		`kv_set {"key":"a","value":"1","ifVersion":7,"ttl":5}`: `{"stored":false,"version":8}`,
		`kv_set {"key":"b","value":"AQ==","base64":true}`:      `{"stored":true}`,
		`kv_delete {"key":"a"}`:                                `{"deleted":true}`,
	}
	for body, want := range map[string]string{
		`const r = fetch("https://a.example/"); return [r.status, r.ok, r.url, r.header("x-a"), r.header("none"), r.text(), r.bytes().length].join();`: jsText("200,true,https://a.example/,1,,page\x00ä,7"),
		`const r = fetch("https://a.example/b"); return [r.status, r.ok, r.url, r.bytes()].join();`:                                                    jsText("404,false,https://b.example/,0,255,254"),
		`return fetch("https://a.example/b").text();`:                                                                                      jsError("https://b.example/ answered with bytes that are no text; bytes() has them"),
		`return fetch("https://a.example/").json();`:                                                                                       jsError("https://a.example/ answered 200 with something that is no JSON: unexpected token: 'page'"),
		`return fetch("https://a.example/p", { method: "POST", headers: { a: 1 }, body: "text" }).status;`:                                 jsText("204"),
		`return fetch("https://a.example/p", { method: "PUT", body: new Uint8Array([0, 1, 255]) }).status;`:                                jsText("204"),
		`return fetch("https://a.example/p", { body: { a: 1 } });`:                                                                         jsError("internal error in tool t: tool.js:2:8: TypeError: fetch: body is neither a string nor a Uint8Array; for a value: JSON.stringify(value)"),
		`return fetch("https://a.example/p", { methd: "PUT" });`:                                                                           jsError(`internal error in tool t: tool.js:2:8: TypeError: fetch: unknown option "methd"; known are method, headers, body`),
		`return fetch.getJSON("https://a.example/j").a;`:                                                                                   jsText("1"),
		`return fetch.getJSON("https://a.example/n");`:                                                                                     jsError("https://a.example/n answered 500: broken"),
		`return fetch.sendJSON("POST", "https://a.example/s", [1]);`:                                                                       jsError("https://a.example/s answered 200 with something that is no JSON: unexpected token: '<'"),
		`try { fetch("https://a.example/l"); } catch (e) { return [e instanceof Refusal, e instanceof Error, e.code, e.message].join(); }`: jsText("true,true,limit,too large"),
		`return fetch("https://a.example/l");`:                                                                                             jsError("too large"),
		`return fetch("https://c.example/");`:                                                                                              jsError(`nobody expects http_request {"url":"https://c.example/"}`),
		`return (async () => (await fetch("https://a.example/")).status)();`:                                                               jsText("200"),
		`return kv.get("a").n;`: jsText("1"),
		`return JSON.stringify([kv.get("none"), kv.read("none").version, kv.read("a")]);`:             jsText(`[null,0,{"value":{"n":1},"version":7,"expires":"2030-01-01T00:00:00Z"}]`),
		`kv.set("a", { n: 2 }); return [kv.replace("a", 1, 7, 5), kv.delete("a"), kv.keys()].join();`: jsText("false,true,a,b,c"),
		`kv.setBytes("b", new Uint8Array([1])); return kv.getBytes("b").join();`:                      jsText("0,255,254"),
		`kv.set("a", undefined);`:                         jsError("internal error in tool t: tool.js:2:4: TypeError: the value of a: it is undefined, which JSON has not"),
		`return config_get("city") + config_get("none");`: jsText("Bernundefined"),
		`progress(1, 2, "half"); return "k";`:             jsText("k"),
		`progress(NaN);`:                                  jsError(`internal error in tool t: tool.js:2:10: TypeError: progress: "progress" is NaN, which JSON has not`),
	} {
		g := jsGuest(t, running(body))
		in := abi.Invocation{Tool: "t", Host: answers.host, Config: map[string]string{"city": "Bern"}}
		if got := answer(t, g, in); got != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
	}
}

// Each call draws other random numbers, whatever state it begins in.
func TestJSRandomNumbers(t *testing.T) {
	for name, g := range map[string]*Guest{
		"drawn in the call":  jsGuest(t, running("return String(Math.random());")),
		"drawn at the start": jsGuest(t, "const drawn = Math.random();"+running("return String(drawn);")),
	} {
		seen := map[string]bool{}
		for range 5 {
			got := answer(t, g, abi.Invocation{Tool: "t"})
			if seen[got] || !strings.HasPrefix(got, `{"content":[{"type":"text","text":"0.`) {
				t.Errorf("%s: %s", name, got)
			}
			seen[got] = true
		}
	}
	g := jsGuest(t, running(`
		let sum = 0, least = 1, most = 0;
		for (let i = 0; i < 10000; i++) { const r = Math.random(); sum += r; least = Math.min(least, r); most = Math.max(most, r); }
		return [sum > 4800 && sum < 5200, least >= 0 && least < 0.01, most < 1 && most > 0.99].join();`))
	if got := answer(t, g, abi.Invocation{Tool: "t"}); got != jsText("true,true,true") {
		t.Error(got)
	}
}

// Calls begin behind the script, or if it asks for what belongs to a call before it.
func TestJSBeginnings(t *testing.T) {
	const anew, random = "outside of functions the script logs, draws at random, or asks for configuration or the host", "Math.random();"
	for text, want := range map[string]string{
		"":                                 "",
		`config_get("a");`:                 anew,
		`try { kv.get("a"); } catch {}`:    anew,
		`console.log("starting");`:         anew,
		"Math.random();":                   anew,
		"Promise.resolve().then(() => 1);": "",
	} {
		g := jsGuest(t, text+"let n = 0;"+running("return String(++n);"))
		var fuel []int64
		for range 3 {
			out, usage, err := g.Call(t.Context(), 1, abi.Invocation{Tool: "t"})
			if err != nil || string(out) != jsText("1") || usage.Anew != want {
				t.Errorf("%s: %s, %v, anew %q", text, out, err, usage.Anew)
			}
			fuel = append(fuel, usage.Fuel)
		}
		if b := g.begun.Load(); b == nil || b.kept == nil || b.at.handle == 0 || b.at.loaded != (want == "") {
			t.Errorf("%s: %+v", text, b)
		}
		if drawn := text == random; !drawn && (fuel[0] != fuel[1] || fuel[1] != fuel[2]) {
			t.Errorf("%s: the same call burned %d", text, fuel)
		}
	}
}

// A call ends with its answer, whatever timers it leaves.
func TestJSTimersEndWithTheCall(t *testing.T) {
	for body, want := range map[string]string{
		`setInterval(() => {}, 1); return "now";`:                                                             "now",
		`setTimeout(() => { for (;;); }, 3600e3); return "now";`:                                              "now",
		`return new Promise((done) => setTimeout(() => done("later"), 5));`:                                   "later",
		`const late = new Promise((f) => setTimeout(f, 3600e3)); return Promise.race([late, "first"]);`:       "first",
		`let n = 0; return new Promise((done) => setInterval(() => { if (++n === 3) done(String(n)); }, 1));`: "3",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		out, _, err := jsGuest(t, running(body)).Call(ctx, 1, abi.Invocation{Tool: "t"})
		cancel()
		if err != nil || string(out) != jsText(want) {
			t.Errorf("%s: %s, %v", body, out, err)
		}
	}
}

func TestJSHostCallsAreCounted(t *testing.T) {
	g := jsGuest(t, running(`let n = 0; try { for (;; n++) kv.get("a"); } catch (e) { return n + e.code; }`))
	in := abi.Invocation{Tool: "t", Limits: abi.Limits{HostCalls: 3}, Host: jsAnswers{`kv_get {"key":"a"}`: `{"found":false}`}.host}
	if got := answer(t, g, in); got != jsText("3limit") {
		t.Errorf("got %s", got)
	}
}

func TestJSLogAndProgress(t *testing.T) {
	g := jsGuest(t, running(`console.debug("d"); log("a\0b", { c: [1] }, undefined, 1n); console.warn(new Error("w")); console.error("e\nf");
		log({ get x() { throw 1; } }); log("\ud800"); progress(1, 2, "half"); return missing.x;`))
	var said []string
	in := abi.Invocation{Tool: "t",
		Log:      func(l abi.LogLevel, s string) { said = append(said, fmt.Sprintf("%d %s", l, s)) },
		Progress: func(raw json.RawMessage) { said = append(said, string(raw)) }}
	answer(t, g, in)
	const mistake = "ReferenceError: missing is not defined"
	want := []string{"1 d", `2 a` + "\ufffd" + `b {"c":[1]} undefined (a value that cannot be shown)`, "3 tool.js:2:78: Error: w", "4 e", "4 f",
		"2 (a value that cannot be shown)"}
	if len(said) < len(want) || !slices.Equal(said[:len(want)], want) || !slices.Contains(said, `{"progress":1,"total":2,"message":"half"}`) {
		t.Errorf("got %q", said)
	}
	trace := said[len(said)-2:] // without the calls around the tool, which are not its author's
	if !strings.HasPrefix(trace[0], "4 tool.js:") || !strings.HasSuffix(trace[0], mistake) || !strings.HasPrefix(trace[1], "4     at run (tool.js:") {
		t.Errorf("trace of a mistake: %q", said)
	}
}

// What the import is given is looked at: a script that gets hold of it, or another
// engine, can call it with anything.
func TestJSDoor(t *testing.T) {
	g := jsGuest(t, running(""))
	in := abi.Invocation{Limits: abi.Limits{OutputBytes: 10}}
	in.Limits = in.Limits.WithDefaults()
	c := newCall(1, []byte("input"), in)
	instance, err := g.module.Instantiate(t.Context(), sandbox.Config{State: c})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := instance.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	e := newEngine(t.Context(), instance, interpreter{})
	if err := e.boot("tool.js"); err != nil {
		t.Fatal(err)
	}
	text := e.newString([]byte("0123456789a"))
	const number, undefined, end = 7, jsUndefined, 1 << 31
	door := jsHost().Funcs[0]
	for _, values := range [][]uint64{
		{undefined, text, number, 0}, {number, undefined, undefined, 0}, {jsOutput, undefined, 0, 0}, {jsOutput, number, 0, 0},
		{99, text, 0, 0}, {uint64(1<<32 - 1), text, 0, 0}, {jsAsk, text, 99, 0}, {jsAsk, text, uint64(1<<32 - 1), 0}, {jsLog, text, 99, 0}, {jsOutput, text, 0},
	} {
		at, err := e.put(make([]byte, 64))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if !instance.Write(uint32(at)+uint32(8*i), []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), byte(v >> 32), byte(v >> 40), byte(v >> 48), byte(v >> 56)}) {
				t.Fatal("no memory")
			}
		}
		stack := []uint64{e.handle, 0, uint64(len(values)), at}
		door.Call(t.Context(), instance, stack)
		if stack[0] != jsUndefined {
			t.Errorf("%x: got %x", values, stack[0])
		}
	}
	for _, at := range []uint64{end, 1<<32 - 1, 1<<32 - 31} {
		stack := []uint64{e.handle, 0, 4, at}
		if door.Call(t.Context(), instance, stack); stack[0] != jsUndefined {
			t.Errorf("values at %x: got %x", at, stack[0])
		}
	}
	if c.native.output != nil {
		t.Errorf("output %q", c.native.output)
	}
}

func TestScripts(t *testing.T) {
	engine := dialecttest.Module{}.Bytes()
	long := strings.Repeat("x", wasmbin.MaxCustomBytes)
	for _, tt := range []struct{ name, text, want string }{
		{"a.js", "1", ""},
		{"", "1", "script: its name has 0 bytes, must have 1 to 255 and a line of its own"},
		{strings.Repeat("a", 256), "1", "script: its name has 256 bytes, must have 1 to 255 and a line of its own"},
		{"a\x1b.js", "1", "script: its name has characters that cannot be shown"},
		{"a.js", " \n", "a.js is empty"},
		{"a.js", "\xff", "a.js is not UTF-8"},
		{"a.js", "1\n2\x00", "a.js:2: a NUL byte"},
		{"a.js", long, "script of 262149 bytes, at most 262144 with its name"},
	} {
		wasm, err := WithScript(engine, tt.name, tt.text)
		if got := fmt.Sprint(err); tt.want != "" && got != tt.want || tt.want == "" && err != nil {
			t.Errorf("%.20q: got %s, want %s", tt.name, got, tt.want)
		}
		if err != nil {
			continue
		}
		if m, err := wasmbin.Check(wasm, wasmbin.Budget{}); err != nil || string(m.Custom[ScriptSection]) != tt.name+"\n"+tt.text {
			t.Errorf("%.20q: %v", tt.name, err)
		}
	}
	if err := CheckEngine(engine); err == nil {
		t.Error("any module is an engine")
	}
}

func TestRecogniseScript(t *testing.T) {
	engine := jsEngine(t)
	section := func(wasm []byte, payload string) *wasmbin.Module {
		t.Helper()
		wasm, err := wasmbin.AppendCustom(wasm, ScriptSection, []byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		m, err := wasmbin.Check(wasm, wasmbin.Budget{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := section(engine, "a.js\n1")
	if kind, err := Recognise(m); kind != JS || err != nil {
		t.Errorf("got %s, %v", kind, err)
	}
	code, err := Code(m)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := wasmbin.Check(code, wasmbin.Budget{}); err != nil || string(again.Custom[ScriptSection]) != "a.js\n1" || len(again.Custom) != 1 {
		t.Errorf("a worker gets %v, %v", again.Custom, err)
	}
	if _, err := Recognise(section(engine, "no script")); err == nil || !strings.Contains(err.Error(), "its name has 9 bytes") {
		t.Errorf("got %v", err)
	}
	if _, err := Recognise(section(mod{}.Bytes(), "a.js\n1")); err == nil || err.Error() != `JavaScript engine: export "malloc" is missing` {
		t.Errorf("got %v", err)
	}
	alone, err := wasmbin.Check(engine, wasmbin.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Recognise(alone); err == nil || err.Error() != `export "describe" is missing` {
		t.Errorf("got %v", err)
	}
}
