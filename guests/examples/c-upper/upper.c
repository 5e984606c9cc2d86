// A hutch module in C: one tool, c_upper, that makes letters large. It needs no
// library and no SDK, only the imports of hutch:host and a little JSON.

typedef unsigned char byte;

#define IMPORT(name) __attribute__((import_module("hutch:host"), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

IMPORT("input_len") int input_len(void);
IMPORT("input_read") int input_read(int off, byte *ptr, int len);
IMPORT("output_write") int output_write(const void *ptr, int len);

// The module's own memory ends where the linker says; pages are added behind.
extern byte __heap_base;

// reserve returns len bytes behind the module's data, or 0. Each call runs on a
// new instance, so nothing is ever given back.
static byte *reserve(unsigned long len) {
	const unsigned long page = 65536, most = 1ul << 30;
	unsigned long base = (unsigned long)&__heap_base, have = __builtin_wasm_memory_size(0) * page;
	if (len > most) return 0;
	if (base + len > have && __builtin_wasm_memory_grow(0, (base + len - have + page - 1) / page) == -1ul) return 0;
	return &__heap_base;
}

static int put(const char *text) {
	int n = 0;
	while (text[n]) n++;
	return output_write(text, n);
}

static int fail(const char *text) {
	put(text);
	return 1;
}

// A cursor over the input. The host sends valid JSON; the end is checked all the
// same, so that nothing but a wrong answer can come of anything else.
static const byte *at, *end;

static byte peek(void) {
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
	return at < end ? *at : 0;
}

static int take(byte c) {
	if (peek() != c) return 0;
	at++;
	return 1;
}

// string takes a string and says where its text is, escapes and all.
static int string(const byte **text, int *len) {
	if (!take('"')) return 0;
	for (*text = at; at < end && *at != '"'; at++)
		if (*at == '\\') at++;
	if (at >= end) return 0;
	*len = (int)(at++ - *text);
	return 1;
}

// skip passes over the next value: to the comma or bracket behind it.
static int skip(void) {
	const byte *text;
	int len, depth = 0;
	for (;;) {
		byte c = peek();
		if (!c) return 0;
		if (depth == 0 && (c == ',' || c == '}' || c == ']')) return 1;
		if (c == '"') {
			if (!string(&text, &len)) return 0;
			continue;
		}
		if (c == '{' || c == '[') depth++;
		if (c == '}' || c == ']') depth--;
		at++;
	}
}

static int same(const byte *text, int len, const char *want) {
	int i = 0;
	while (i < len && want[i] && text[i] == (byte)want[i]) i++;
	return i == len && !want[i];
}

// member moves the cursor to the value of a member of the object that is next.
static int member(const char *name) {
	const byte *key;
	int len;
	if (!take('{')) return 0;
	do {
		if (!string(&key, &len) || !take(':')) return 0;
		if (same(key, len, name)) return 1;
		if (!skip()) return 0;
	} while (take(','));
	return 0;
}

static byte *append(byte *out, const char *text) {
	while (*text) *out++ = (byte)*text++;
	return out;
}

// upper appends text, which is a JSON string's inside, with its letters a to z
// large; an escape such as \n or \u00e4 stays as it is.
static byte *upper(byte *out, const byte *text, int len) {
	for (int i = 0; i < len; i++) {
		byte c = text[i];
		if (c == '\\') {
			int keep = i + 1 < len && text[i + 1] == 'u' ? 5 : 1;
			while (keep-- && i + 1 < len) *out++ = text[i++];
			c = text[i];
		} else if (c >= 'a' && c <= 'z') {
			c -= 'a' - 'A';
		}
		*out++ = c;
	}
	return out;
}

EXPORT("describe") int describe(void) {
	return put("{\"version\":\"1.0.0\",\"tools\":[{\"name\":\"c_upper\",\"title\":\"Upper case\","
		"\"description\":\"Makes the letters a to z of a text large. Use it to try a module that is written in C.\","
		"\"inputSchema\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
		"\"required\":[\"text\"],\"additionalProperties\":false},"
		"\"annotations\":{\"readOnlyHint\":true,\"destructiveHint\":false,\"idempotentHint\":true,\"openWorldHint\":false}}]}");
}

EXPORT("call") int call(void) {
	const unsigned long around = 64; // bytes of a result besides its text, and some
	const byte *params, *name, *text;
	int name_len, text_len, n = input_len();
	byte *input = n < 0 || n > 1 << 29 ? 0 : reserve(2ul * (unsigned long)n + around), *result, *out;
	if (!input || input_read(0, input, n) != n) return fail("the input does not fit");
	result = input + n;
	at = input, end = input + n;

	if (!member("params")) return fail("call: no params");
	params = at;
	if (!member("name") || !string(&name, &name_len)) return fail("call: no name");
	if (!same(name, name_len, "c_upper")) return fail("no such tool in this module");
	at = params;
	if (!member("arguments") || !member("text") || !string(&text, &text_len))
		return put("{\"content\":[{\"type\":\"text\",\"text\":\"text is missing, or no string\"}],\"isError\":true}");

	out = append(result, "{\"content\":[{\"type\":\"text\",\"text\":\"");
	out = append(upper(out, text, text_len), "\"}]}");
	return output_write(result, (int)(out - result)) ? fail("the result is larger than the host takes") : 0;
}
