package main

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"hash"
	"hash/crc32"

	"golang.org/x/crypto/blake2b"
)

// newHash has every algorithm that the schema lets through.
var newHash = map[string]func() hash.Hash{
	"sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
	"sha3-256":    func() hash.Hash { return sha3.New256() },
	"sha3-512":    func() hash.Hash { return sha3.New512() },
	"blake2b-256": unkeyed(blake2b.New256),
	"blake2b-512": unkeyed(blake2b.New512),
	"sha1":        sha1.New,
	"md5":         md5.New,
	"crc32":       func() hash.Hash { return crc32.NewIEEE() },
}

// unkeyed drops the error of a constructor that only a key can fail.
func unkeyed(newKeyed func(key []byte) (hash.Hash, error)) func() hash.Hash {
	return func() hash.Hash {
		h, err := newKeyed(nil)
		if err != nil {
			panic(err)
		}
		return h
	}
}
