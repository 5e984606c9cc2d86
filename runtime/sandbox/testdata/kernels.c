// What a meter's cost is measured on: straight arithmetic, a tight loop, calls, and
// loops within each other. Each returns a number that depends on all it did.

typedef unsigned char u8;
typedef unsigned int u32;

#define EXPORT(name) __attribute__((export_name(#name)))

static u8 memory[1 << 22];

static const u32 k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
	0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
	0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define ROR(x, n) ((x) >> (n) | (x) << (32 - (n)))

static void block(u32 *h, const u8 *p) {
	u32 w[64], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], x = h[7];
	for (int i = 0; i < 16; i++)
		w[i] = (u32)p[4 * i] << 24 | (u32)p[4 * i + 1] << 16 | (u32)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (ROR(w[i - 15], 7) ^ ROR(w[i - 15], 18) ^ w[i - 15] >> 3) +
			(ROR(w[i - 2], 17) ^ ROR(w[i - 2], 19) ^ w[i - 2] >> 10);
	for (int i = 0; i < 64; i++) {
		u32 t = x + (ROR(e, 6) ^ ROR(e, 11) ^ ROR(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];
		u32 s = (ROR(a, 2) ^ ROR(a, 13) ^ ROR(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
		x = g, g = f, f = e, e = d + t, d = c, c = b, b = a, a = t + s;
	}
	h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += x;
}

// sha256 hashes 64 KiB n times.
EXPORT(sha256) u32 sha256(u32 n) {
	u32 h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	for (u32 i = 0; i < 65536; i++)
		memory[i] = (u8)(i * 7);
	while (n--)
		for (u32 i = 0; i < 65536; i += 64)
			block(h, memory + i);
	return h[0];
}

// sieve counts the primes below 4,000,000 n times.
EXPORT(sieve) u32 sieve(u32 n) {
	u32 primes = 0;
	const u32 size = 4000000;
	while (n--) {
		for (u32 i = 0; i < size; i++)
			memory[i] = 1;
		for (u32 i = 2; i * i < size; i++)
			if (memory[i])
				for (u32 j = i * i; j < size; j += i)
					memory[j] = 0;
		for (u32 i = 2; i < size; i++)
			primes += memory[i];
	}
	return primes;
}

EXPORT(fib) __attribute__((noinline)) u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

#define SIDE 200

// matmul multiplies two matrices n times.
EXPORT(matmul) u32 matmul(u32 n) {
	double *a = (double *)memory, *b = a + SIDE * SIDE, *c = b + SIDE * SIDE;
	for (int i = 0; i < SIDE * SIDE; i++)
		a[i] = i % 7, b[i] = i % 5;
	while (n--)
		for (int i = 0; i < SIDE; i++)
			for (int j = 0; j < SIDE; j++) {
				double sum = 0;
				for (int l = 0; l < SIDE; l++)
					sum += a[i * SIDE + l] * b[l * SIDE + j];
				c[i * SIDE + j] = sum;
			}
	return (u32)c[SIDE * SIDE - 1];
}
