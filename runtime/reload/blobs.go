package reload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// BlobTTL is how long bytes that no folder holds any more are kept.
const BlobTTL = 24 * time.Hour

const (
	blobSuffix = ".wasm"
	tempPrefix = "incoming-"
	copyBytes  = 128 << 10
)

// ErrTooLarge is wrapped by [Blobs.Put] when there are more bytes than allowed.
var ErrTooLarge = errors.New("too large")

// Blobs is a folder of modules, each named <sha256>.wasm. A file appears in it
// whole or not at all. One process owns the folder; its methods may be called
// from several goroutines.
type Blobs struct {
	dir string
	// mu keeps Prune from removing a blob that Put has just vouched for.
	mu sync.Mutex
}

// OpenBlobs returns the blobs in dir, which it creates, readable by its owner
// alone, if it is missing.
func OpenBlobs(dir string) (*Blobs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("module folder: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("module folder: %w", err)
	}
	return &Blobs{dir: dir}, nil
}

// Put copies r, at most limit bytes of it, and returns the SHA-256 of exactly
// the bytes it kept, as 64 lower-case hex digits. It writes to a temporary file
// in the folder itself, so r may come from another file system. The error for
// more than limit bytes wraps [ErrTooLarge]; nothing is kept then.
func (b *Blobs) Put(r io.Reader, limit int64) (digest string, size int64, err error) {
	tmp, digest, size, err := b.receive(r, limit)
	if err != nil {
		return "", 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := os.Rename(tmp, b.path(digest)); err != nil {
		return "", 0, errors.Join(err, os.Remove(tmp))
	}
	return digest, size, syncFolder(b.dir)
}

// receive writes r to a temporary file and closes it, whole and durable.
func (b *Blobs) receive(r io.Reader, limit int64) (name, digest string, size int64, err error) {
	tmp, err := os.CreateTemp(b.dir, tempPrefix)
	if err != nil {
		return "", "", 0, err
	}
	digest, size, err = hashTo(tmp, r, limit)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return "", "", 0, errors.Join(err, os.Remove(tmp.Name()))
	}
	return tmp.Name(), digest, size, nil
}

// Hold reports whether the bytes of digest are there, and keeps them for
// another [BlobTTL] if they are.
func (b *Blobs) Hold(digest string) bool {
	if !abi.IsDigest(digest) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	return os.Chtimes(b.path(digest), now, now) == nil
}

// Fetch returns the bytes of digest, verified against it. Bytes that do not
// match are thrown away, so that the next Put of the right ones heals the folder.
func (b *Blobs) Fetch(digest string) ([]byte, error) {
	if !abi.IsDigest(digest) {
		return nil, fmt.Errorf("module %q: no SHA-256 digest", abi.Cut(digest, 80))
	}
	raw, err := os.ReadFile(b.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("module sha256:%.12s: its bytes are gone, put the file back into its folder", digest)
	}
	if err != nil {
		return nil, fmt.Errorf("module sha256:%.12s: %w", digest, withoutPath(err))
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != digest {
		err := fmt.Errorf("module sha256:%.12s: stored bytes are damaged (sha256:%x)", digest, sum[:6])
		return nil, errors.Join(err, os.Remove(b.path(digest)))
	}
	return raw, nil
}

// Prune removes blobs that used does not name and that nobody has held for
// [BlobTTL], and what interrupted writers left. It returns how many it removed.
func (b *Blobs) Prune(used map[string]bool) (int, error) {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return 0, fmt.Errorf("module folder: %w", err)
	}
	removed, failed := 0, error(nil)
	for _, e := range entries {
		digest, isBlob := strings.CutSuffix(e.Name(), blobSuffix)
		isBlob = isBlob && abi.IsDigest(digest)
		if !isBlob && !strings.HasPrefix(e.Name(), tempPrefix) {
			continue // not ours
		}
		if isBlob && used[digest] {
			b.Hold(digest)
			continue
		}
		gone, err := b.removeOld(e.Name())
		failed = errors.Join(failed, err)
		if gone {
			removed++
		}
	}
	return removed, failed
}

func (b *Blobs) removeOld(name string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	path := filepath.Join(b.dir, name)
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || time.Since(fi.ModTime()) < BlobTTL {
		return false, err
	}
	err = os.Remove(path)
	return err == nil, err
}

func (b *Blobs) path(digest string) string { return filepath.Join(b.dir, digest+blobSuffix) }

// hashTo copies at most limit bytes from r to w through one small buffer.
func hashTo(w io.Writer, r io.Reader, limit int64) (digest string, size int64, err error) {
	h := sha256.New()
	both := struct{ io.Writer }{io.MultiWriter(h, w)} // hide ReaderFrom: the buffer is the bound
	size, err = io.CopyBuffer(both, struct{ io.Reader }{io.LimitReader(r, limit+1)}, make([]byte, copyBytes))
	if err != nil {
		return "", 0, err
	}
	if size > limit {
		return "", 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// withoutPath drops the path that the os package puts into its errors: what
// is wrong with a module is shown to people who may not see the host's layout.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
