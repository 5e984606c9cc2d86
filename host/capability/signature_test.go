package capability

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

// signer is a key, and its public half as a policy has it.
func signer(fill byte) (ed25519.PrivateKey, string) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{fill}, ed25519.SeedSize))
	return private, base64.StdEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
}

func sign(private ed25519.PrivateKey, module []byte) []byte {
	return bytes.Join([][]byte{module, signatureHead(), ed25519.Sign(private, module)}, nil)
}

func TestCheckSignature(t *testing.T) {
	private, key := signer(1)
	other, otherKey := signer(2)
	module := []byte("\x00asm\x01\x00\x00\x00")
	signed := sign(private, module)
	flip := func(i int) []byte {
		b := bytes.Clone(signed)
		b[i] ^= 1
		return b
	}
	for _, c := range []struct {
		name   string
		module []byte
		key    string
		want   error
	}{
		{"signed", signed, key, nil},
		{"signed by both, the last counts", sign(other, signed), otherKey, nil},
		{"signed by both, the first is under it", sign(other, signed), key, errOtherSigner},
		{"not signed", module, key, errUnsigned},
		{"empty", nil, key, errUnsigned},
		{"the section alone", signed[len(module):], key, errOtherSigner},
		{"another key", signed, otherKey, errOtherSigner},
		{"another byte", flip(0), key, errOtherSigner},
		{"another signature", flip(len(signed) - 1), key, errOtherSigner},
		{"something behind it", append(bytes.Clone(signed), 0, 1, 0), key, errUnsigned},
		{"cut off", signed[:len(signed)-1], key, errUnsigned},
	} {
		if err := CheckSignature(c.module, c.key); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if err := CheckSignature(signed, "AAAA"); err == nil || !strings.Contains(err.Error(), "not 32 bytes") {
		t.Errorf("a key that is none: %v", err)
	}
}

// A signature that is wanted is wanted of everything: also of what asks for nothing
// or was granted something, and in development.
func TestF10_SignaturesAreWanted(t *testing.T) {
	_, key := signer(1)
	policy := mustParse(t, granting("{kv: {}}")+"    signature: ed25519:"+key+"\n")
	for _, dev := range []bool{false, true} {
		for _, m := range []tool.Module{module(nil), asking()} {
			var asked string
			b := NewBook(Options{Policy: policy, Dev: dev, Signed: func(digest, k string) error {
				asked = digest + " " + k
				return errUnsigned
			}})
			want := "the policy wants a signature by ed25519:" + key + ": it is not signed: have it signed, or take signature from x.wasm in the policy"
			if d := b.Decide(local, m, tool.Spec{Name: "t"}); d.Status != tool.Held || d.Reason != want {
				t.Errorf("unsigned: %+v", d)
			}
			if asked != m.Digest+" "+key {
				t.Errorf("asked about %q", asked)
			}
			b = NewBook(Options{Policy: policy, Dev: dev, Signed: func(string, string) error { return nil }})
			if d := b.Decide(local, m, tool.Spec{Name: "t"}); d.Status != tool.Ready {
				t.Errorf("signed: %+v", d)
			}
		}
	}
}
