// What stands around a JavaScript tool: the functions it finds as globals, and the
// way in for the host. It is a function that gets the engine's door to the host and
// returns the way in. A tool can change every object that it finds, so what is
// needed later is taken here, before it runs.
(function (door) {
	"use strict";

	// What the host is asked for, and which operations are gated: js.go has the same.
	const INPUT = 0, OUTPUT = 1, LOG = 2, PROGRESS = 3, CONFIG = 4, ASK = 5, RANDOM = 6;
	const HTTP = 0, KV_GET = 1, KV_SET = 2, KV_DELETE = 3;
	// What an output is.
	const DONE = 0, FAILED = 1, NO_MEMORY = 2;

	const { stringify, parse } = JSON;
	const { create, entries, freeze, keys } = Object;
	const { isArray } = Array;
	const method = Function.prototype.bind.bind(Function.prototype.call);
	const charCodeAt = method(String.prototype.charCodeAt), slice = method(String.prototype.slice);
	const indexOf = method(String.prototype.indexOf), replaceAll = method(String.prototype.replaceAll);
	const toLowerCase = method(String.prototype.toLowerCase);
	const wellFormed = method(String.prototype.toWellFormed);
	const join = method(Array.prototype.join), push = method(Array.prototype.push);
	const then = method(Promise.prototype.then);
	const text = String, Bytes = Uint8Array, Promised = Promise;
	const Failure = Error, Fault = TypeError, Broken = InternalError;
	const mistakes = [TypeError, ReferenceError, RangeError, SyntaxError, EvalError, URIError, InternalError];

	// The engine wraps its door into a function that looks for Function.prototype.call
	// whenever it is used. It is looked through once, as long as nobody can change that.
	let host;
	const call = Function.prototype.call;
	Function.prototype.call = function () { host = this; };
	door();
	Function.prototype.call = call;

	const plain = (value) => replaceAll(wellFormed(text(value)), "\0", "\ufffd"); // a text ends at a NUL
	const output = (json, what) => host(OUTPUT, json, what, 0);
	const fail = (why) => output(plain(why), FAILED);

	// json returns value as JSON, or throws: what JSON has not, it would leave out or
	// make null of.
	function json(value, what) {
		const found = stringify(value, function (key, v) {
			const at = key === "" ? "it" : stringify(key);
			if (typeof v === "string") return wellFormed(v); // half a pair of surrogates is no character
			if (typeof v === "number" && v - v !== 0) throw new Fault(`${what}: ${at} is ${v}, which JSON has not`);
			if (typeof v === "bigint") throw new Fault(`${what}: ${at} is a BigInt, which JSON has not; make a number or a string of it`);
			return v;
		});
		if (found === undefined) throw new Fault(`${what}: it is ${value === undefined ? "undefined" : "a " + typeof value}, which JSON has not`);
		return found;
	}

	// ----- errors

	// place returns where in the tool's file an error was thrown, with ": " behind it.
	let file = "";
	function place(error) {
		const stack = error?.stack;
		if (typeof stack !== "string") return "";
		const at = indexOf(stack, file + ":");
		if (at < 0) return "";
		let end = at + file.length + 1;
		for (let c; (c = charCodeAt(stack, end)) === 58 || (c >= 48 && c <= 57);) end++;
		return slice(stack, at, end) + ": ";
	}

	// trail returns where an error came from, a line for each call and a break before
	// each, without those of this file.
	function trail(error) {
		const stack = error.stack;
		if (typeof stack !== "string") return "";
		let kept = "";
		for (let at = 0, end; at < stack.length; at = end + 1) {
			end = indexOf(stack, "\n", at);
			if (end < 0) end = stack.length;
			const line = slice(stack, at, end);
			if (indexOf(line, "<hutch>:") < 0) kept += "\n" + line;
		}
		return kept;
	}

	const isMistake = (error) => {
		for (let i = 0; i < mistakes.length; i++) if (error instanceof mistakes[i]) return true;
		return false;
	};
	const isMemory = (error) => error instanceof Broken && error.message === "out of memory";
	const isError = (error) => error instanceof Failure;

	// shown is what an author reads of what was thrown.
	function shown(error) {
		try {
			if (isError(error)) return plain(`${place(error)}${error.name}: ${error.message}`);
			return plain(`it threw ${typeof error === "string" ? stringify(error) : "a value that is no Error: " + text(error)}`);
		} catch {
			return "it threw a value that cannot be shown";
		}
	}

	// Refusal is thrown for a gated operation that came to nothing.
	class Refusal extends Error {
		constructor(code, message) {
			super(message);
			this.name = "Refusal";
			this.code = code;
		}
	}
	const codes = ["ok", "denied", "invalid", "limit", "unavailable", "cancelled"];

	// ----- what a tool asks the host for

	function received(answer) {
		if (typeof answer !== "string") throw new Broken("out of memory");
		return answer;
	}

	function ask(op, name, body) {
		const answer = received(host(ASK, json(body, name), op, 0));
		const code = charCodeAt(answer, 0) - 48;
		const value = parse(slice(answer, 1));
		if (code === 0) return value;
		throw new Refusal(codes[code], value?.error?.message ?? `${name}: ${codes[code]}, without a reason`);
	}

	function log(level, values) {
		let line = "";
		for (let i = 0; i < values.length; i++) {
			let word;
			try {
				word = typeof values[i] === "string" ? values[i] : isError(values[i]) ? shown(values[i]) : stringify(values[i]) ?? text(values[i]);
			} catch {
				word = "(a value that cannot be shown)";
			}
			line += (i === 0 ? "" : " ") + word;
		}
		host(LOG, plain(line), level, 0);
	}

	function configGet(key) {
		const value = parse(received(host(CONFIG, json(text(key), "config_get"), 0, 0)));
		return value === null ? undefined : value;
	}

	function progress(done, total = 0, message = "") {
		const report = { __proto__: null, progress: +done };
		if (total) report.total = +total;
		if (message) report.message = text(message);
		host(PROGRESS, json(report, "progress"), 0, 0); // nobody listens, or too often: no tool fails for that
	}

	// ----- random numbers

	// The engine's own begin the same in each call: a call begins in a state that was
	// kept. These are sfc32, which the host seeds when the first one is drawn.
	let a, b, c, n;
	function draw() {
		const drawn = (((a + b) | 0) + n) | 0;
		n = (n + 1) | 0;
		a = b ^ (b >>> 9);
		b = (c + (c << 3)) | 0;
		c = (((c << 21) | (c >>> 11)) + drawn) | 0;
		return drawn >>> 0;
	}
	function random() {
		if (n === undefined) {
			const seed = () => host(RANDOM, "", 0, 0);
			a = seed(), b = seed(), c = seed(), n = seed();
		}
		return ((draw() >>> 5) * 0x4000000 + (draw() >>> 6)) / 0x20000000000000;
	}

	// ----- bytes

	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const values = new Bytes(128);
	for (let i = 0; i < 64; i++) values[charCodeAt(letters, i)] = i;

	function toBase64(bytes) {
		const out = [];
		for (let i = 0; i < bytes.length; i += 3) {
			const n = (bytes[i] << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
			const left = bytes.length - i;
			push(out, letters[n >> 18] + letters[(n >> 12) & 63] + (left > 1 ? letters[(n >> 6) & 63] : "=") + (left > 2 ? letters[n & 63] : "="));
		}
		return join(out, "");
	}

	function fromBase64(encoded) {
		let size = encoded.length;
		while (size > 0 && encoded[size - 1] === "=") size--;
		const bytes = new Bytes((size * 3) >> 2);
		for (let i = 0, at = 0, n = 0, bits = 0; i < size; i++) {
			n = ((n << 6) | values[charCodeAt(encoded, i) & 127]) & 0xffff;
			if ((bits += 6) >= 8) bytes[at++] = n >> (bits -= 8);
		}
		return bytes;
	}

	function encodeText(string) {
		const out = [];
		for (let i = 0; i < string.length; i++) {
			let c = charCodeAt(string, i);
			if (c >= 0xd800 && c < 0xe000) {
				const low = charCodeAt(string, i + 1);
				c = c < 0xdc00 && low >= 0xdc00 && low < 0xe000 ? (i++, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00)) : 0xfffd;
			}
			if (c < 0x80) push(out, c);
			else if (c < 0x800) push(out, 0xc0 | (c >> 6), 0x80 | (c & 63));
			else if (c < 0x10000) push(out, 0xe0 | (c >> 12), 0x80 | ((c >> 6) & 63), 0x80 | (c & 63));
			else push(out, 0xf0 | (c >> 18), 0x80 | ((c >> 12) & 63), 0x80 | ((c >> 6) & 63), 0x80 | (c & 63));
		}
		return new Bytes(out);
	}

	const isBytes = (value) => value instanceof Bytes;

	// ----- http

	function fetch(url, options = {}) {
		const request = { __proto__: null, url: text(url) };
		for (const name of keys(options)) {
			if (name !== "method" && name !== "headers" && name !== "body") {
				throw new Fault(`fetch: unknown option ${stringify(name)}; known are method, headers, body`);
			}
		}
		const { method, headers, body } = options;
		if (method !== undefined) request.method = text(method);
		if (headers !== undefined) {
			request.headers = create(null);
			for (const [name, value] of entries(headers)) request.headers[name] = text(value);
		}
		if (isBytes(body)) request.bodyBase64 = toBase64(body);
		else if (typeof body === "string") request.body = body;
		else if (body !== undefined) throw new Fault("fetch: body is neither a string nor a Uint8Array; for a value: JSON.stringify(value)");
		return response(ask(HTTP, "http_request", request), request.url);
	}

	function response(answer, asked) {
		const { status, url = asked, headers = {}, body = "", bodyBase64 = "" } = answer;
		const bytes = () => (bodyBase64 === "" ? encodeText(body) : fromBase64(bodyBase64));
		const found = {
			status, url, headers, ok: status >= 200 && status <= 299,
			header(name) {
				for (const [known, list] of entries(headers)) {
					if (toLowerCase(known) === toLowerCase(text(name))) return list[0];
				}
				return undefined;
			},
			bytes,
			text() {
				if (bodyBase64 !== "") throw new Failure(`${url} answered with bytes that are no text; bytes() has them`);
				return body;
			},
			json() {
				try {
					return parse(found.text());
				} catch (error) {
					throw new Failure(`${url} answered ${status} with something that is no JSON: ${error.message}`);
				}
			},
		};
		return found;
	}

	// exchange returns the JSON of an answer that is one of success.
	function exchange(url, options) {
		const got = fetch(url, options);
		if (got.ok) return got.bytes().length === 0 ? undefined : got.json();
		let why = "";
		try {
			why = slice(got.text(), 0, 300);
		} catch {}
		throw new Failure(`${got.url} answered ${got.status}${why === "" ? "" : ": " + why}`);
	}
	fetch.getJSON = (url) => exchange(url, { headers: { Accept: "application/json" } });
	fetch.sendJSON = (method, url, value) => exchange(url, {
		method, headers: { Accept: "application/json", "Content-Type": "application/json" }, body: json(value, "the body for " + url),
	});

	// ----- storage

	function kvRead(key) {
		const got = ask(KV_GET, "kv_get", { __proto__: null, key: text(key) });
		if (!got.found) return { value: undefined, version: 0, expires: undefined };
		let value;
		try {
			value = parse(got.value);
		} catch {
			throw new Failure(`the value of ${key} is no JSON; kv.getBytes reads it`);
		}
		return { value, version: got.version, expires: got.expires };
	}
	function kvStore(body, ttl) {
		if (ttl !== undefined) body.ttl = ttl;
		return ask(KV_SET, "kv_set", body).stored;
	}
	const kv = {
		get: (key) => kvRead(key).value,
		read: kvRead,
		set(key, value, ttl) {
			kvStore({ __proto__: null, key: text(key), value: json(value, "the value of " + key) }, ttl);
		},
		replace: (key, value, version, ttl) =>
			kvStore({ __proto__: null, key: text(key), value: json(value, "the value of " + key), ifVersion: version }, ttl),
		getBytes(key) {
			const got = ask(KV_GET, "kv_get", { __proto__: null, key: text(key), base64: true });
			return got.found ? fromBase64(got.value) : undefined;
		},
		setBytes(key, value, ttl) {
			if (!isBytes(value)) throw new Fault("kv.setBytes: the value is no Uint8Array");
			kvStore({ __proto__: null, key: text(key), value: toBase64(value), base64: true }, ttl);
		},
		delete: (key) => ask(KV_DELETE, "kv_delete", { __proto__: null, key: text(key) }).deleted,
		keys(prefix = "") {
			const all = [];
			for (let body = { __proto__: null, prefix: text(prefix) }; ;) {
				const got = ask(KV_GET, "kv_get", body);
				push(all, ...got.keys);
				if (!got.more || got.keys.length === 0) return all;
				body.after = all[all.length - 1];
			}
		},
	};

	// ----- definitions

	const tools = [];
	const about = { __proto__: null, version: undefined, requests: undefined };
	let described = false;

	function only(object, known, where) {
		if (typeof object !== "object" || object === null || isArray(object)) throw new Fault(`${where} takes an object`);
		for (const name of keys(object)) {
			let found = false;
			for (let i = 0; i < known.length; i++) found ||= known[i] === name;
			if (!found) throw new Fault(`${where}: unknown property ${stringify(name)}; known are ${join(known, ", ")}`);
		}
	}

	const facts = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];
	function tool(spec) {
		only(spec, [...facts, "run"], "tool");
		const name = spec.name;
		if (typeof name !== "string" || name === "") throw new Fault("tool: name is missing: a text such as \"greet\"");
		const where = `tool ${stringify(name)}`, run = spec.run;
		if (typeof spec.description !== "string" || spec.description === "") throw new Fault(`${where}: description is missing: a sentence by which a model chooses it`);
		if (typeof run !== "function") throw new Fault(`${where}: run is missing: the function that gets the arguments`);
		for (let i = 0; i < tools.length; i++) {
			if (tools[i].name === name) throw new Fault(`${where}: defined twice`);
		}
		const said = create(null);
		for (let i = 0; i < facts.length; i++) {
			if (spec[facts[i]] !== undefined) said[facts[i]] = spec[facts[i]];
		}
		said.inputSchema ??= { type: "object", properties: {}, additionalProperties: false };
		push(tools, { __proto__: null, name, run, said: json(said, where), structured: said.outputSchema !== undefined });
	}

	function module(spec) {
		only(spec, ["version", "requests"], "module");
		if (described) throw new Fault("module: called twice");
		described = true;
		if (spec.version !== undefined) about.version = json(spec.version, "version");
		if (spec.requests !== undefined) about.requests = json(spec.requests, "requests");
	}

	function describe() {
		if (tools.length === 0) return fail(`${file} defines no tool: call tool({name, description, run}) in it`);
		let all = "";
		for (let i = 0; i < tools.length; i++) all += (i === 0 ? "" : ",") + tools[i].said;
		let more = "";
		if (about.requests !== undefined) more += `,"requests":${about.requests}`;
		if (about.version !== undefined) more += `,"version":${about.version}`;
		return output(`{"tools":[${all}]${more}}`, DONE);
	}

	// ----- results

	class Result {
		#content;
		#structured;
		constructor(content, structured) {
			this.#content = content;
			this.#structured = structured;
		}
		static json(r) {
			const content = typeof r.#content === "string" ? [{ __proto__: null, type: "text", text: r.#content }] : r.#content ?? [];
			let all = `{"content":${json(content, "content")}`;
			if (r.#structured !== undefined) all += `,"structuredContent":${json(r.#structured, "structured content")}`;
			return all + "}";
		}
		static is = (value) => typeof value === "object" && value !== null && #content in value;
	}
	freeze(Result);

	const textResult = (string, rest) => `{"content":[{"type":"text","text":${stringify(wellFormed(string))}}]${rest}}`;

	// resultOf makes a result of what a tool returned.
	function resultOf(value) {
		if (typeof value === "string") return textResult(value, "");
		if (Result.is(value)) return Result.json(value);
		if (value === undefined || value === null) throw new Fault(`it returned ${value}; return a string, or a value that JSON has`);
		const structured = json(value, "result");
		return textResult(structured, structured[0] === "{" ? `,"structuredContent":${structured}` : "");
	}

	// failed is the result of a tool that threw. An Error is said to the model, which
	// may try again; a mistake in the tool itself is said to be one, with its place.
	function failed(name, error) {
		let why = `internal error in tool ${name}: ${shown(error)}`;
		try {
			if (isError(error) && !isMistake(error)) why = text(error.message);
			else log(4, [shown(error) + (isError(error) ? trail(error) : "")]);
		} catch {}
		return textResult(why, `,"isError":true`);
	}

	function finish(name, make) {
		const answered = answer(name, make);
		stopTimers();
		return answered;
	}

	function answer(name, make) {
		let found;
		try {
			found = make();
		} catch (error) {
			if (error === null || isMemory(error)) return output(failed(name, error), NO_MEMORY); // null: no memory for an Error
			found = failed(name, error);
		}
		if (output(found, DONE) === 0) return 0;
		return output(textResult(`the result has about ${found.length} bytes, more than the host takes; ask for less`, `,"isError":true`), DONE);
	}

	// ----- timers

	// What a tool answered nothing waits for any more: a timer that is left would hold
	// the call until its time is over.
	let timers = [];
	const started = (start) => (...all) => {
		const timer = start(...all);
		push(timers, timer);
		return timer;
	};
	const { setTimeout, setInterval, clearTimeout } = globalThis;
	for (const [name, value] of entries({ setTimeout: started(setTimeout), setInterval: started(setInterval) })) {
		Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
	}
	function stopTimers() {
		for (let i = 0; i < timers.length; i++) clearTimeout(timers[i]);
		timers = [];
	}

	// ----- the way in

	let pending = "";

	function start() {
		const { name, arguments: given } = parse(received(host(INPUT, "", 0, 0))).params;
		let found;
		for (let i = 0; i < tools.length; i++) if (tools[i].name === name) found = tools[i];
		if (found === undefined) return fail(`no tool ${stringify(name)} in this module`);
		const { run } = found;
		let value;
		try {
			value = run(given);
			if (!(value instanceof Promised)) return finish(name, () => resultOf(value));
			pending = name;
			const settle = (make) => {
				if (pending === "") return;
				pending = "";
				finish(name, make);
			};
			then(value, (v) => settle(() => resultOf(v)), (error) => settle(() => { throw error; }));
		} catch (error) {
			pending = "";
			finish(name, () => { throw error; });
		}
		return 0;
	}

	// unsettled answers for a promise for which nothing is left to wait, and returns 1
	// if there was one.
	function unsettled() {
		if (pending === "") return 0;
		const name = pending;
		pending = "";
		finish(name, () => { throw new Broken("the promise that it returned never settles: nothing is left that could"); });
		return 1;
	}

	const console = {
		debug: (...all) => log(1, all), log: (...all) => log(2, all), info: (...all) => log(2, all),
		warn: (...all) => log(3, all), error: (...all) => log(4, all),
	};
	for (const name of ["std", "os", "bjson", "gc", "print", "scriptArgs", "navigator", "QJS_PROXY_VALUE"]) delete globalThis[name];
	for (const [name, value] of entries({
		tool, module, fetch, kv, progress, console, Refusal, config_get: configGet,
		log: (...all) => log(2, all), result: (content, structured) => new Result(content, structured),
	})) {
		Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
	}

	Object.defineProperty(Math, "random", { value: random, writable: true, configurable: true, enumerable: false });

	const ways = [
		(name) => { file = name; },
		describe,
		start,
		unsettled,
		(error) => output(shown(error), FAILED), // the file itself threw
	];
	return (way, value) => ways[way](value);
})
