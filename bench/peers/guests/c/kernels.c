// The kernels need no library, so that any compiler with a wasm32 target builds
// them.
#include "kernels.h"

#ifdef __wasm__
#define EXPORT(name) __attribute__((export_name(name)))
#else
#define EXPORT(name)
#endif

typedef unsigned char byte;
typedef unsigned int u32;
typedef unsigned long long u64;

static const u32 rounds[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static u32 right(u32 x, int n) { return x >> n | x << (32 - n); }

static void block(u32 *h, const byte *p) {
	u32 w[64], s[8];
	for (int i = 0; i < 16; i++)
		w[i] = (u32)p[i * 4] << 24 | (u32)p[i * 4 + 1] << 16 | (u32)p[i * 4 + 2] << 8 | p[i * 4 + 3];
	for (int i = 16; i < 64; i++) {
		u32 x = w[i - 15], y = w[i - 2];
		w[i] = w[i - 16] + (right(x, 7) ^ right(x, 18) ^ x >> 3) + w[i - 7] + (right(y, 17) ^ right(y, 19) ^ y >> 10);
	}
	for (int i = 0; i < 8; i++) s[i] = h[i];
	u32 a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], hh = s[7];
	for (int i = 0; i < 64; i++) {
		u32 t1 = hh + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & f) ^ (~e & g)) + rounds[i] + w[i];
		u32 t2 = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
		hh = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
	}
	h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += hh;
}

// sum is SHA-256 of whole blocks of 64 bytes.
static void sum(const byte *data, u32 len, byte *digest) {
	u32 h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	byte last[64] = {0x80};
	for (u32 at = 0; at < len; at += 64) block(h, data + at);
	for (int i = 0; i < 8; i++) last[56 + i] = (byte)((u64)len * 8 >> (56 - 8 * i));
	block(h, last);
	for (int i = 0; i < 32; i++) digest[i] = (byte)(h[i / 4] >> (24 - 8 * (i % 4)));
}

static byte buffer[64 << 10];

EXPORT("sha256") int run_sha256(void) {
	byte digest[32] = {0};
	for (u32 i = 0; i < sizeof buffer; i++) buffer[i] = (byte)(i * 31 + 7);
	for (int round = 0; round < 16; round++) {
		sum(buffer, sizeof buffer, digest);
		for (int i = 0; i < 32; i++) buffer[i] = digest[i];
	}
	return digest[0] != 0x5d || digest[1] != 0x4e || digest[2] != 0x38 || digest[3] != 0x6d;
}

enum { sieve_size = 1000000, matrix = 160 };

static byte composite[sieve_size];

EXPORT("sieve") int run_sieve(void) {
	int count = 0;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < sieve_size; i++) composite[i] = 0;
		count = 0;
		for (int i = 2; i < sieve_size; i++) {
			if (composite[i]) continue;
			count++;
			for (int j = i * 2; j < sieve_size; j += i) composite[j] = 1;
		}
	}
	return count != 78498;
}

// fib goes through a pointer that may change, or compilers unroll the recursion
// each in its own way.
static int fib(int n);
static int (*volatile next)(int) = fib;
static __attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

EXPORT("fib") int run_fib(void) { return next(30) != 832040; }

static double a[matrix * matrix], b[matrix * matrix], c[matrix * matrix];

EXPORT("matmul") int run_matmul(void) {
	double total = 0;
	for (int i = 0; i < matrix; i++)
		for (int j = 0; j < matrix; j++) {
			a[i * matrix + j] = (i * 3 + j * 7) % 17;
			b[i * matrix + j] = (i * 5 + j * 11) % 13;
		}
	for (int i = 0; i < matrix; i++)
		for (int j = 0; j < matrix; j++) {
			double s = 0;
			for (int k = 0; k < matrix; k++) s += a[i * matrix + k] * b[k * matrix + j];
			c[i * matrix + j] = s;
			total += s;
		}
	return total != 196600800;
}

static const char input[] = "{\"name\":\"weather\",\"n\":42,\"tags\":[\"a\",\"b\"],\"x\":{\"city\":\"Berlin\",\"k\":1.5}}";
static volatile char output[128];

EXPORT("echo") int run_echo(void) {
	int n = 0;
	for (const char *p = "{\"echo\":"; *p; p++) output[n++] = *p;
	for (const char *p = input; *p; p++) output[n++] = *p;
	output[n++] = '}';
	return n != 81 || output[80] != '}';
}
