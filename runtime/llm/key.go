package llm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// maxKey is in bytes; tokens that carry claims have a few thousand.
const maxKey = 16 << 10

// A keySource is where the key comes from. Errors show neither key nor path.
type keySource struct{ value, file string }

func newKeySource(value, file string) (keySource, error) {
	k := keySource{strings.TrimSpace(value), file}
	if value != "" && file != "" {
		return k, errors.New("key: given itself and as a file: one of them is wanted")
	}
	_, err := k.get()
	return k, err
}

// get returns the key, empty if there is none.
func (k keySource) get() (string, error) {
	if k.file == "" {
		return k.value, checkKey(k.value)
	}
	f, err := os.Open(k.file)
	if err != nil {
		return "", fmt.Errorf("key file: %w", withoutPath(err))
	}
	defer f.Close() //nolint:errcheck // it was read only
	b, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return "", fmt.Errorf("key file: %w", withoutPath(err))
	}
	key := strings.TrimSpace(string(b))
	if key == "" {
		return "", errors.New("key file: empty: write the key into it")
	}
	if err := checkKey(key); err != nil {
		return "", fmt.Errorf("key file: %w", err)
	}
	return key, nil
}

func checkKey(key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("key: more than %d bytes", maxKey)
	}
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return errors.New("key: has a character that no key has: one line of letters, digits and signs is wanted")
		}
	}
	return nil
}

func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// scrub removes the key from what the provider says.
func (k keySource) scrub(text string) string {
	key, err := k.get()
	if err != nil || len(key) < 4 {
		return text
	}
	return strings.ReplaceAll(text, key, "[key]")
}
