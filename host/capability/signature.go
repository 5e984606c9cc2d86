package capability

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/hutch-run/hutch/protocol/tool"
)

// SignatureSection is the custom section with a module's signature. It is the last
// of the file and holds 64 bytes: what ed25519 (RFC 8032, not prehashed) makes of
// all the bytes before the section. So a signed module is one file, and without the
// section it is the file that was signed.
const SignatureSection = "hutch.signature"

// signatureHead is all of the section but the signature: its id, its size, and its
// name with the length before it.
func signatureHead() []byte {
	size := 1 + len(SignatureSection) + ed25519.SignatureSize
	return append([]byte{0, byte(size), byte(len(SignatureSection))}, SignatureSection...)
}

// What [CheckSignature] finds.
var (
	errUnsigned    = errors.New("it is not signed")
	errOtherSigner = errors.New("its signature is not of this key, or of other bytes")
)

// CheckSignature returns nil if the module is signed with the key, which is 32
// bytes in base64.
func CheckSignature(module []byte, key string) error {
	public, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return fmt.Errorf("the key %s is not 32 bytes in base64", shown(key))
	}
	head := signatureHead()
	at := len(module) - len(head) - ed25519.SignatureSize
	if at < 0 || !bytes.HasPrefix(module[at:], head) {
		return errUnsigned
	}
	if !ed25519.Verify(public, module[:at], module[at+len(head):]) {
		return errOtherSigner
	}
	return nil
}

// signed says whether a module has the signature that its entry wants.
func (b *Book) signed(m tool.Module, key string) *verdict {
	if key == "" {
		return nil
	}
	err := errors.New("nothing here can check it")
	if b.o.Signed != nil {
		err = b.o.Signed(m.Digest, key)
	}
	if err == nil {
		return nil
	}
	return held("the policy wants a signature by ed25519:%s: %v: have it signed, or take signature from %s in the policy", key, err, m.Name)
}
