// What is measured, in AssemblyScript. Every function does a fixed amount of work
// and returns 0 if the result is the right one.

const rounds: StaticArray<u32> = [
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

function block(h: StaticArray<u32>, w: StaticArray<u32>, p: StaticArray<u8>, at: i32): void {
	for (let i = 0; i < 16; i++) {
		const o = at + i * 4;
		w[i] = (<u32>p[o] << 24) | (<u32>p[o + 1] << 16) | (<u32>p[o + 2] << 8) | <u32>p[o + 3];
	}
	for (let i = 16; i < 64; i++) {
		const x = w[i - 15], y = w[i - 2];
		w[i] = w[i - 16] + (rotr(x, 7) ^ rotr(x, 18) ^ (x >> 3)) + w[i - 7] + (rotr(y, 17) ^ rotr(y, 19) ^ (y >> 10));
	}
	let a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], hh = h[7];
	for (let i = 0; i < 64; i++) {
		const t1 = hh + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + rounds[i] + w[i];
		const t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
		hh = g;
		g = f;
		f = e;
		e = d + t1;
		d = c;
		c = b;
		b = a;
		a = t1 + t2;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
	h[5] += f;
	h[6] += g;
	h[7] += hh;
}

// sum is SHA-256 of whole blocks of 64 bytes.
function sum(data: StaticArray<u8>, digest: StaticArray<u8>): void {
	const h: StaticArray<u32> = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
	const w = new StaticArray<u32>(64);
	for (let at = 0; at < data.length; at += 64) block(h, w, data, at);
	const last = new StaticArray<u8>(64);
	last[0] = 0x80;
	const bits = <u64>data.length * 8;
	for (let i = 0; i < 8; i++) last[56 + i] = <u8>(bits >> (56 - 8 * i));
	block(h, w, last, 0);
	for (let i = 0; i < 32; i++) digest[i] = <u8>(h[i >> 2] >> (24 - 8 * (i & 3)));
}

export function sha256(): i32 {
	const buffer = new StaticArray<u8>(64 << 10);
	const digest = new StaticArray<u8>(32);
	for (let i = 0; i < buffer.length; i++) buffer[i] = <u8>(i * 31 + 7);
	for (let round = 0; round < 16; round++) {
		sum(buffer, digest);
		for (let i = 0; i < 32; i++) buffer[i] = digest[i];
	}
	return digest[0] == 0x5d && digest[1] == 0x4e && digest[2] == 0x38 && digest[3] == 0x6d ? 0 : 1;
}

export function sieve(): i32 {
	const size = 1000000;
	const composite = new StaticArray<u8>(size);
	let count = 0;
	for (let round = 0; round < 2; round++) {
		composite.fill(0);
		count = 0;
		for (let i = 2; i < size; i++) {
			if (composite[i]) continue;
			count++;
			for (let j = i * 2; j < size; j += i) composite[j] = 1;
		}
	}
	return count == 78498 ? 0 : 1;
}

function take(n: i32): i32 {
	return n < 2 ? n : take(n - 1) + take(n - 2);
}

export function fib(): i32 {
	return take(30) == 832040 ? 0 : 1;
}

export function matmul(): i32 {
	const n = 160;
	const a = new StaticArray<f64>(n * n), b = new StaticArray<f64>(n * n), c = new StaticArray<f64>(n * n);
	let total: f64 = 0;
	for (let i = 0; i < n; i++) {
		for (let j = 0; j < n; j++) {
			a[i * n + j] = (i * 3 + j * 7) % 17;
			b[i * n + j] = (i * 5 + j * 11) % 13;
		}
	}
	for (let i = 0; i < n; i++) {
		for (let j = 0; j < n; j++) {
			let s: f64 = 0;
			for (let k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
			c[i * n + j] = s;
			total += s;
		}
	}
	return total == 196600800 && c[0] > 0 ? 0 : 1;
}

const input = '{"name":"weather","n":42,"tags":["a","b"],"x":{"city":"Berlin","k":1.5}}';

export function echo(): i32 {
	const out = '{"echo":' + input + "}";
	return out.length == 81 && out.charCodeAt(80) == 0x7d ? 0 : 1;
}
