package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
)

const (
	// maxIdentity is the largest file of keys that is read.
	maxIdentity = 64 << 10
	// scryptWork and maxScryptWork are logarithms of what a passphrase costs: 18
	// is a second and 256 MiB, and no file may ask for more than four times that.
	scryptWork    = 18
	maxScryptWork = 20
)

// ageCodec keeps the text encrypted (age-encryption.org/v1), to the keys of an
// identity file or by a passphrase.
type ageCodec struct {
	identity   string // path
	passphrase Value
	work       int
}

func newAgeCodec(identity string, passphrase Value) (*ageCodec, error) {
	if (identity == "") == (passphrase.Reveal() == "") {
		return nil, errors.New("the age file of secrets is opened by an identity file or by a passphrase: give one of them")
	}
	return &ageCodec{identity: identity, passphrase: passphrase, work: scryptWork}, nil
}

func (c *ageCodec) keys() string { return c.identity }

func (c *ageCodec) decode(raw []byte) ([]byte, error) {
	identities, err := c.identities()
	if err != nil {
		return nil, err
	}
	var none *age.NoIdentityMatchError
	r, err := age.Decrypt(unarmored(raw), identities...)
	switch {
	case errors.As(err, &none) && c.identity == "":
		return nil, errors.New("the passphrase does not open it")
	case errors.As(err, &none):
		return nil, errors.New("no key of the identity file opens it")
	case err != nil && !isAge(raw): // the error quotes what was found
		return nil, errors.New("it is not encrypted with age")
	case err != nil:
		return nil, fmt.Errorf("decrypt: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("decrypt: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return text, nil
}

func isAge(raw []byte) bool {
	return bytes.HasPrefix(raw, []byte(armor.Header)) || bytes.HasPrefix(raw, []byte("age-encryption.org/"))
}

// unarmored reads an encrypted file in either of its forms.
func unarmored(raw []byte) io.Reader {
	if bytes.HasPrefix(raw, []byte(armor.Header)) {
		return armor.NewReader(bytes.NewReader(raw))
	}
	return bytes.NewReader(raw)
}

func (c *ageCodec) identities() ([]age.Identity, error) {
	if c.identity == "" {
		id, err := age.NewScryptIdentity(c.passphrase.Reveal())
		if err != nil {
			return nil, err
		}
		id.SetMaxWorkFactor(maxScryptWork)
		return []age.Identity{id}, nil
	}
	raw, err := readPrivate(c.identity, maxIdentity)
	if err != nil {
		return nil, fmt.Errorf("identity file: %w", err)
	}
	identities, err := age.ParseIdentities(bytes.NewReader(raw))
	if err != nil { // the parser's own error may quote a key
		return nil, errors.New("identity file: it is not one as age-keygen writes it")
	}
	return identities, nil
}

// NewIdentity makes a file with a new key for the encrypted file. What is there
// already is not replaced.
func NewIdentity(path string) error {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return withoutPath(err)
	}
	err = locked(path, func() error {
		if _, err := os.Lstat(path); err == nil {
			return errors.New("it is there already")
		}
		return writePrivate(path, fmt.Appendf(nil, "# public key: %s\n%s\n", id.Recipient(), id))
	})
	if err != nil {
		return fmt.Errorf("identity file: %w", err)
	}
	return nil
}

// encode encrypts to all keys of the identity file. A file that others can open
// too is not written: they would be left out.
func (c *ageCodec) encode(text, before []byte) ([]byte, error) {
	recipients, err := c.recipients()
	if err != nil {
		return nil, err
	}
	if n := countRecipients(before); n > len(recipients) {
		return nil, fmt.Errorf("it is encrypted to %d keys, known are %d: change it with age, for all of them", n, len(recipients))
	}
	var out bytes.Buffer
	target, closeArmor := io.Writer(&out), func() error { return nil }
	if bytes.HasPrefix(before, []byte(armor.Header)) {
		w := armor.NewWriter(&out)
		target, closeArmor = w, w.Close
	}
	w, err := age.Encrypt(target, recipients...)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	if _, err = w.Write(text); err == nil {
		err = w.Close()
	}
	if err = errors.Join(err, closeArmor()); err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return out.Bytes(), nil
}

func (c *ageCodec) recipients() (to []age.Recipient, err error) {
	if c.identity == "" {
		r, err := age.NewScryptRecipient(c.passphrase.Reveal())
		if err != nil {
			return nil, err
		}
		r.SetWorkFactor(c.work)
		return []age.Recipient{r}, nil
	}
	identities, err := c.identities()
	if err != nil {
		return nil, err
	}
	for _, id := range identities {
		switch id := id.(type) {
		case *age.X25519Identity:
			to = append(to, id.Recipient())
		case *age.HybridIdentity:
			to = append(to, id.Recipient())
		default:
			return nil, errors.New("identity file: a key of a kind that can only decrypt")
		}
	}
	return to, nil
}

// countRecipients says to how many keys a file is encrypted, 0 if it is none.
func countRecipients(raw []byte) int {
	counter := new(recipientCounter)
	_, _ = age.Decrypt(unarmored(raw), counter) // which cannot succeed
	return counter.n
}

// recipientCounter is an identity that only counts.
type recipientCounter struct{ n int }

// Unwrap implements [age.Identity].
func (c *recipientCounter) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	for _, s := range stanzas {
		if !strings.HasSuffix(s.Type, "-grease") { // there for implementations that are too strict
			c.n++
		}
	}
	return nil, age.ErrIncorrectIdentity
}
