package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestHashData(t *testing.T) {
	for algorithm, want := range map[string]string{
		"sha256":      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		"sha384":      "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
		"sha512":      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
		"sha3-256":    "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
		"sha3-512":    "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0",
		"blake2b-256": "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319",
		"blake2b-512": "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d17d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923",
		"sha1":        "a9993e364706816aba3e25717850c26c9cd0d89d",
		"md5":         "900150983cd24fb0d6963f7d28e17f72",
		"crc32":       "352441c2",
	} {
		got := sdktest.Call(t, module, "hash_data", digestInput{Data: "abc", Encoding: "text", Algorithm: algorithm})
		if got.Text != want {
			t.Errorf("%s: got %s, want %s", algorithm, got.Text, want)
		}
	}
	if len(newHash) != 10 {
		t.Errorf("%d algorithms, 10 have a vector here", len(newHash))
	}
}

func TestHashDataOfBytes(t *testing.T) {
	var got digestOutput
	sdktest.Call(t, module, "hash_data", `{"data":"/w==","encoding":"base64","algorithm":"crc32"}`).Into(t, &got)
	if want := (digestOutput{"crc32", "ff000000", "/wAAAA==", 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
