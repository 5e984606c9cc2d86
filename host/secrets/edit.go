package secrets

import (
	"errors"
	"fmt"
	"io/fs"
)

// ErrUnset says that there is no secret of that name.
var ErrUnset = errors.New("the secret is not set")

// Set keeps a secret, which is durable and in use when it returns. It goes into
// the file that has it already, else into the encrypted file if there is one, else
// into the plain one.
func (v *Vault) Set(name, value string) error {
	if err := errors.Join(CheckName(name), checkValue(value)); err != nil {
		return err
	}
	return v.change(name, func() error {
		d, err := v.place(name, value)
		if err != nil {
			return err
		}
		_, err = d.write(name, value)
		return err
	})
}

// Encrypt is [Vault.Set] into the encrypted file, wherever the secret was; the plain
// one no longer has it.
func (v *Vault) Encrypt(name, value string) error {
	if err := errors.Join(CheckName(name), checkValue(value)); err != nil {
		return err
	}
	return v.change(name, func() error {
		if err := v.fits(name, value); err != nil {
			return err
		}
		if v.target == nil || v.target.source != AgeFile {
			return errors.New("there is no encrypted file: name an identity file that opens it, or set a passphrase")
		}
		if _, err := v.target.write(name, value); err != nil {
			return err
		}
		for _, d := range v.files {
			if d == v.target {
				continue
			}
			if _, err := d.write(name, ""); err != nil {
				return fmt.Errorf("it is encrypted, and not taken out of the %s, which goes first: %w", d.source, err)
			}
		}
		return nil
	})
}

// fits refuses a value that would be seen in what stands in for values.
func (v *Vault) fits(name, value string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return checkMarkers(append(v.all(v.live.Load().values), Hide(name, value)))
}

// place returns the document that a secret is to be written to.
func (v *Vault) place(name, value string) (*document, error) {
	if err := v.fits(name, value); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range v.files {
		if _, ok := d.values[name]; ok {
			return d, nil
		}
	}
	if v.target == nil {
		return nil, errors.New("there is no file to keep secrets in: name one in the configuration")
	}
	return v.target, nil
}

// Remove forgets a secret, in all files that have it; it is out of use when
// Remove returns. The error wraps [ErrUnset] if no file has it.
func (v *Vault) Remove(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return v.change(name, func() error {
		removed := false
		for _, d := range v.files {
			found, err := d.write(name, "")
			if err != nil {
				return err
			}
			removed = removed || found
		}
		if !removed {
			return fmt.Errorf("%s: %w", name, ErrUnset)
		}
		return nil
	})
}

// change runs f on documents that are up to date, and takes up what it did. The
// vault goes on answering meanwhile: another process may keep a writer waiting.
func (v *Vault) change(name string, f func() error) error {
	if _, ok := v.env[envName(name)]; ok {
		return fmt.Errorf("%s comes from the environment: take %s out of it, and start again", name, envKey(name))
	}
	v.editing.Lock()
	defer v.editing.Unlock()
	v.refresh()
	err := f()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range v.files {
		d.settled = false
	}
	v.refreshLocked()
	return err
}

// write changes one secret in the file, as it is at that moment.
func (d *document) write(name, value string) (found bool, err error) {
	err = locked(d.path, func() error {
		raw, err := readPrivate(d.path, maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			raw, err = nil, nil
		}
		if err != nil {
			return err
		}
		next, had, err := d.edit(raw, name, value)
		found = had
		if err != nil || value == "" && !had {
			return err
		}
		if next == nil && d.source == AgeFile {
			return removePrivate(d.path)
		}
		return writePrivate(d.path, next)
	})
	if err != nil {
		err = fmt.Errorf("secrets in the %s: %w", d.source, err)
	}
	return found, err
}
