package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestDecodeData(t *testing.T) {
	for args, want := range map[string]string{
		`{"data":" aGVs\n bG8 "}`:             `{"text":"hello","bytes":5}`,
		`{"data":"ff 00","from":"hex"}`:       `{"base64":"/wA=","bytes":2}`,
		`{"data":"mzxw6===","from":"base32"}`: `{"text":"foo","bytes":3}`,
		`{"data":"a+b%2Bc","from":"url"}`:     `{"text":"a+b+c","bytes":5}`,
		`{"data":""}`:                         `{"text":"","bytes":0}`,
		`{"data":"_-8="}`:                     "this is no base64: illegal base64 data at input byte 0; it would be base64url",
		`{"data":"abc","from":"hex"}`:         "this is no hex: encoding/hex: odd length hex string; it would be base64",
		`{"data":"%zz","from":"url"}`:         `this is no percent-encoding: invalid URL escape "%zz"`,
		`{"data":"x","from":"rot13"}`:         `invalid arguments for decode_data: from: "rot13" is none of base64, base64url, base32, hex, url`,
	} {
		if got := sdktest.Call(t, module, "decode_data", args); got.Text != want {
			t.Errorf("%s: got %s, want %s", args, got.Text, want)
		}
	}
}
