package main

import (
	"encoding/base64"
	"encoding/hex"

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
