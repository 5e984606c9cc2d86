package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// signedBy is the module with a signature as its author adds it.
func signedBy(private ed25519.PrivateKey, module []byte) []byte {
	return append(bytes.Clone(module), wasmbintest.Custom(capability.SignatureSection, ed25519.Sign(private, module))...)
}

// A module of which the policy wants a signature is held without one and with
// another's, and one that serves goes on when such a file takes its place.
func TestF10_SignedModules(t *testing.T) {
	author := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	stranger := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	key := base64.StdEncoding.EncodeToString(author.Public().(ed25519.PublicKey))
	s := startServe(t, nil)
	defer s.end(t)
	s.decide(t, fmt.Sprintf("version: 1\nmodules:\n  hi.wasm: {signature: \"ed25519:%s\"}\n", key))
	wants := "the policy wants a signature by ed25519:" + key + ": "

	s.drop(t, "hi.wasm", greeter("hi", "unsigned"))
	if m := s.awaitReason(t, "hi.wasm", wants+"it is not signed"); m.Status != tool.Held {
		t.Errorf("unsigned: %+v", m)
	}
	s.drop(t, "hi.wasm", signedBy(author, greeter("hi", "signed")))
	s.awaitListed(t, "hi", true)
	s.drop(t, "hi.wasm", signedBy(stranger, greeter("hi", "forged")))
	s.awaitReason(t, "hi.wasm", wants+"its signature is not of this key, or of other bytes")
	session, _ := s.connect(t)
	if got := callText(t, session, "hi"); got != "signed" {
		t.Errorf("a forged version answered %q", got)
	}
	s.drop(t, "hi.wasm", signedBy(author, greeter("hi", "again")))
	for late := time.After(patientFor); callText(t, session, "hi") != "again"; {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			t.Fatal("the next version does not serve")
		}
	}
	closeSession(t, session)
}

// Bytes that cannot be read now are looked at again, and those that can, once.
func TestSignaturesAreCheckedOnce(t *testing.T) {
	author := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	key := base64.StdEncoding.EncodeToString(author.Public().(ed25519.PublicKey))
	reads, fails := 0, errors.New("no disk")
	c := &signatures{fetch: func(string) ([]byte, error) {
		reads++
		return signedBy(author, greeter("hi", "")), fails
	}}
	if err := c.check("a", key); !errors.Is(err, fails) {
		t.Errorf("got %v", err)
	}
	fails = nil
	for range 3 {
		if err := c.check("a", key); err != nil {
			t.Error(err)
		}
	}
	if reads != 2 {
		t.Errorf("%d reads, want 2", reads)
	}
}
