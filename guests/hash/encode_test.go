package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestEncodeAndDecodeData(t *testing.T) {
	for to, want := range map[string]string{
		"base64": "Z3LDvMOfIT8+", "base64url": "Z3LDvMOfIT8-", "base32": "M5ZMHPGDT4QT6PQ=", "hex": "6772c3bcc39f213f3e", "url": "gr%C3%BC%C3%9F%21%3F%3E",
	} {
		got := sdktest.Call(t, module, "encode_data", map[string]string{"data": "grüß!?>", "to": to})
		if got.Text != want {
			t.Errorf("to %s: got %s, want %s", to, got.Text, want)
		}
		back := sdktest.Call(t, module, "decode_data", map[string]string{"data": want, "from": to})
		if want := `{"text":"grüß!?>","bytes":9}`; back.Text != want {
			t.Errorf("from %s: got %s, want %s", to, back.Text, want)
		}
	}
}
