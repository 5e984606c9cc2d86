// Package wasmbintest writes modules as bytes. It has those that hurt a host which
// trusts them: fixtures of a few bytes, and generated ones, each as it is and as a tool
// that hutch recognises. It has those that are at a limit of the pre-check, makes valid
// ones of random bytes, and reads the scripts of the specification's tests.
//
// Like all test packages it panics over a mistake in a test.
package wasmbintest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
)

// Hex returns the bytes that digits stand for. Blanks may stand between them.
func Hex(digits string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		panic("wasmbintest: " + err.Error())
	}
	return b
}

// Uint is n as unsigned LEB128, Int as signed.
func Uint(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// Int is n as signed LEB128, as constants are written.
func Int(n int) []byte {
	var b []byte
	for ; n < -64 || n > 63; n >>= 7 {
		b = append(b, byte(n&0x7f|0x80))
	}
	return append(b, byte(n&0x7f))
}

// Join joins parts.
func Join(parts ...[]byte) []byte { return slices.Concat(parts...) }

// Module is a whole module of these sections.
func Module(sections ...[]byte) []byte {
	return Join(Hex("0061736d01000000"), Join(sections...))
}

// Section is one section with its id and size.
func Section(id byte, body ...[]byte) []byte {
	b := Join(body...)
	return Join([]byte{id}, Uint(len(b)), b)
}

// Vector is a vector of these entries.
func Vector(entries ...[]byte) []byte { return Join(Uint(len(entries)), Join(entries...)) }

// Repeat is a vector of n equal entries.
func Repeat(n int, entry []byte) []byte { return Join(Uint(n), bytes.Repeat(entry, n)) }

// Name is a name or any other text with its length.
func Name(s string) []byte { return Join(Uint(len(s)), []byte(s)) }

// Custom is a custom section.
func Custom(title string, payload []byte) []byte { return Section(0, Name(title), payload) }

// Func is the code of one function: its locals, its instructions and their end.
func Func(locals []byte, code ...[]byte) []byte { return Sized(locals, Join(code...), Hex("0b")) }

// Sized is parts with their size in front of them.
func Sized(parts ...[]byte) []byte {
	b := Join(parts...)
	return Join(Uint(len(b)), b)
}

// Times is code n times.
func Times(n int, code string) []byte { return bytes.Repeat(Hex(code), n) }

// Nested are n blocks in each other, each of which begins with begin.
func Nested(n int, begin string) []byte { return Join(Times(n, begin), Times(n, "0b")) }

// BrTable jumps to the end of its block, by n targets and a default.
func BrTable(n int) []byte { return Join(Hex("4100 0e"), Uint(n), make([]byte, n+1)) }

// BrTables are n of them, each in a block of its own.
func BrTables(n, targets int) []byte {
	return bytes.Repeat(Join(Hex("0240"), BrTable(targets), Hex("0b")), n)
}
