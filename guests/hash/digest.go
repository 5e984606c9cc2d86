package main

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"

	"golang.org/x/crypto/blake2b"

	"github.com/hutch-run/hutch/guests/sdk"
)

var digest = sdk.Define(sdk.Spec{
	Name:  "hash_data",
	Title: "Hash",
	Description: "Computes a digest or checksum of a text or of bytes. Returns it in hex and in base64. Use it to compare or identify " +
		"contents exactly; you cannot compute one by thinking. md5, sha1 and crc32 are for old formats: anyone can make two " +
		"contents with the same value.",
}, hashData)

type digestInput struct {
	Data      string `json:"data" doc:"What to hash."`
	Encoding  string `json:"encoding" doc:"How data is written: text is hashed as UTF-8, base64 and hex are decoded first." enum:"text,base64,hex" default:"text"`
	Algorithm string `json:"algorithm" enum:"sha256,sha384,sha512,sha3-256,sha3-512,blake2b-256,blake2b-512,sha1,md5,crc32" default:"sha256"`
}

type digestOutput struct {
	Algorithm string `json:"algorithm"`
	Hex       string `json:"hex"`
	Base64    string `json:"base64"`
	Bytes     int    `json:"bytes" doc:"How many bytes were hashed."`
}

// Text is the hex form, as the usual commands print it.
func (o digestOutput) Text() string { return o.Hex }

func hashData(_ *sdk.Call, in digestInput) (digestOutput, error) {
	data, err := fromText(in.Data, in.Encoding)
	if err != nil {
		return digestOutput{}, err
	}
	h := newHash[in.Algorithm]()
	h.Write(data) // a hash.Hash never fails
	sum := h.Sum(nil)
	return digestOutput{in.Algorithm, hex.EncodeToString(sum), base64.StdEncoding.EncodeToString(sum), len(data)}, nil
}

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
