package reload

import (
	"bytes"
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
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/plainfile"
)

// BlobTTL is how long bytes that no folder holds any more are kept.
const BlobTTL = 24 * time.Hour

const (
	blobSuffix = ".wasm"
	tempPrefix = "incoming-"
	copyBytes  = 128 << 10
	// maxBlob bounds what is read back at once: what a worker can be given.
	maxBlob = 64 << 20
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
	// sources are the files that bytes were read from, by digest, as a watcher
	// last found them: what is damaged here is read from there again.
	sources map[string][]source
	known   sync.Mutex
}

// source is a module file as it was found.
type source struct {
	folder, name string
	size         int64
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
	if err := plainfile.Move(tmp, b.path(digest)); err != nil {
		return "", 0, errors.Join(err, os.Remove(tmp))
	}
	return digest, size, nil
}

// receive writes r to a temporary file and closes it, whole and durable.
func (b *Blobs) receive(r io.Reader, limit int64) (name, digest string, size int64, err error) {
	tmp, err := os.CreateTemp(b.dir, tempPrefix)
	if errors.Is(err, fs.ErrNotExist) { // somebody tidied too well
		if err = os.MkdirAll(b.dir, 0o700); err == nil {
			tmp, err = os.CreateTemp(b.dir, tempPrefix)
		}
	}
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

// Hold reports whether a plain file of that size is there for digest, and keeps
// it for another [BlobTTL] if it is. What it holds is for Fetch to find out.
func (b *Blobs) Hold(digest string, size int64) bool {
	return abi.IsDigest(digest) && b.touch(digest, func(fi fs.FileInfo) bool { return fi.Size() == size })
}

func (b *Blobs) touch(digest string, when func(fs.FileInfo) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	fi, err := os.Lstat(b.path(digest))
	if err != nil || plainfile.Check(fi) != nil || !when(fi) {
		return false
	}
	now := time.Now()
	return os.Chtimes(b.path(digest), now, now) == nil
}

// Fetch returns the bytes of digest, verified against it. If they are gone or
// damaged, and a file that a watcher read them from still has them, they come
// from there and are kept anew.
func (b *Blobs) Fetch(digest string) ([]byte, error) {
	if !abi.IsDigest(digest) {
		return nil, fmt.Errorf("module %q: no SHA-256 digest", abi.Cut(digest, 80))
	}
	raw, err := verified(digest, func() ([]byte, error) { return plainfile.Read(b.path(digest), maxBlob) })
	if err == nil {
		return raw, nil
	}
	if raw := b.restore(digest); raw != nil {
		return raw, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("module sha256:%.12s: its bytes are gone, put the file back into its folder", digest)
	}
	err = fmt.Errorf("module sha256:%.12s: %w", digest, withoutPath(err))
	if errors.Is(err, errDamaged) { // so that the next look at the folder heals it
		err = errors.Join(err, withoutPath(plainfile.Remove(b.path(digest))))
	}
	return nil, err
}

var errDamaged = errors.New("stored bytes are damaged")

// verified returns what read does if its digest is that one.
func verified(digest string, read func() ([]byte, error)) ([]byte, error) {
	raw, err := read()
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("%w (sha256:%x)", errDamaged, sum[:6])
	}
	return raw, nil
}

// restore returns the bytes of digest from a file that had them, nil if there is
// none that has them still, and keeps them anew.
func (b *Blobs) restore(digest string) []byte {
	b.known.Lock()
	sources := b.sources[digest]
	b.known.Unlock()
	for _, s := range sources {
		raw, err := verified(digest, s.read)
		if err != nil {
			continue // what became of the file, the watcher tells
		}
		// A place that cannot be filled costs the reading again, no more.
		_, _, _ = b.Put(bytes.NewReader(raw), int64(len(raw)))
		return raw
	}
	return nil
}

func (s source) read() (raw []byte, err error) {
	root, err := os.OpenRoot(s.folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	rel, err := resolve(root, s.folder, s.name)
	if err != nil {
		return nil, err
	}
	f, fi, err := open(root, rel)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if fi.Size() != s.size {
		return nil, errMoving
	}
	raw = make([]byte, s.size)
	_, err = io.ReadFull(f, raw)
	return raw, err
}

// learn notes which files have which bytes, instead of what was noted before.
func (b *Blobs) learn(found []tool.Candidate) {
	sources := map[string][]source{}
	for _, c := range found {
		if c.Err == nil {
			sources[c.Digest] = append(sources[c.Digest], source{c.Source, c.Name, c.Size})
		}
	}
	b.known.Lock()
	defer b.known.Unlock()
	b.sources = sources
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
			b.touch(digest, func(fs.FileInfo) bool { return true })
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
	err = plainfile.Remove(path)
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

// keepError says that a module could not be kept, which is not its fault and may
// not last.
type keepError struct{ err error }

func (e *keepError) Error() string {
	return "cannot be kept in the state folder: " + withoutPath(e.err).Error()
}

func (e *keepError) Unwrap() error { return e.err }

// withoutPath drops the path that the os package puts into its errors: what
// is wrong with a module is shown to people who may not see the host's layout.
func withoutPath(err error) error {
	var k *keepError
	if errors.As(err, &k) {
		return k
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
