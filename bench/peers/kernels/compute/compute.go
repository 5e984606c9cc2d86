// Package compute is the arithmetic that is measured, in Go: as a guest, and as
// native code. Every function does a fixed amount of work and reports whether the
// result is the right one. The other languages have the same functions.
package compute

import "encoding/binary"

// What the functions come to; the same in every language.
const (
	wantSHA256 = 0x5d4e386d // the first four bytes
	wantSieve  = 78_498
	wantFib    = 832_040
	wantMatmul = 196_600_800
)

const (
	sieveSize = 1_000_000
	matrix    = 160
)

// SHA256 hashes 64 KiB sixteen times, each time with the last digest in front.
func SHA256() bool {
	buffer := make([]byte, 64<<10)
	for i := range buffer {
		buffer[i] = byte(i*31 + 7)
	}
	var digest [32]byte
	for range 16 {
		digest = sum(buffer)
		copy(buffer, digest[:])
	}
	return binary.BigEndian.Uint32(digest[:]) == wantSHA256
}

// Sieve counts the primes below a million, twice.
func Sieve() bool {
	composite := make([]byte, sieveSize)
	count := 0
	for range 2 {
		clear(composite)
		count = 0
		for i := 2; i < sieveSize; i++ {
			if composite[i] != 0 {
				continue
			}
			count++
			for j := i * 2; j < sieveSize; j += i {
				composite[j] = 1
			}
		}
	}
	return count == wantSieve
}

// Fib takes the thirtieth Fibonacci number, the slow way.
func Fib() bool { return fib(30) == wantFib }

//go:noinline
func fib(n int32) int32 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

// Matmul multiplies two matrices of 160 by 160.
func Matmul() bool {
	a, b, c := make([]float64, matrix*matrix), make([]float64, matrix*matrix), make([]float64, matrix*matrix)
	for i := range matrix {
		for j := range matrix {
			a[i*matrix+j] = float64((i*3 + j*7) % 17)
			b[i*matrix+j] = float64((i*5 + j*11) % 13)
		}
	}
	total := 0.0
	for i := range matrix {
		for j := range matrix {
			s := 0.0
			for k := range matrix {
				s += a[i*matrix+k] * b[k*matrix+j]
			}
			c[i*matrix+j] = s
			total += s
		}
	}
	return total == wantMatmul && c[0] > 0
}

// input is the 72 bytes of a small call.
const input = `{"name":"weather","n":42,"tags":["a","b"],"x":{"city":"Berlin","k":1.5}}`

// Echo is the trivial call: it wraps 72 bytes in a few more.
func Echo() bool {
	out := append(make([]byte, 0, 128), `{"echo":`...)
	out = append(out, input...)
	out = append(out, '}')
	return len(out) == 81 && out[80] == '}'
}
