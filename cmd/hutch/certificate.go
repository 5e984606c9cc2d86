package main

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/hutch-run/hutch/host/ownfile"
)

const (
	// maxPEM is the largest file with a certificate or a key, in bytes.
	maxPEM = 1 << 20
	// certificateEvery is how often a change of the files is looked for, while there are
	// new connections.
	certificateEvery = time.Second
)

// A certificate is what a listener proves with who it is, as two files have it. It is read
// again when one of them changes; as long as what they have then is no good, the one
// before stays.
type certificate struct {
	files tlsFiles
	log   *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	marks   [2]fileMark // of what was read last, good or not
	looked  time.Time
}

// A fileMark changes when a file does.
type fileMark struct {
	size int64
	at   time.Time
}

// openCertificate reads the files, and returns nil if none are named.
func openCertificate(files tlsFiles, log *slog.Logger) (*certificate, error) {
	if files.Cert == "" {
		return nil, nil
	}
	c := &certificate{files: files, log: log, looked: time.Now()}
	c.marks = c.mark()
	var err error
	if c.current, err = files.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// config is TLS as a server has it.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// get returns the certificate for a new connection.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < certificateEvery {
		return c.current, nil
	}
	c.looked = time.Now()
	marks := c.mark()
	if marks == c.marks {
		return c.current, nil
	}
	c.marks = marks
	fresh, err := c.files.read()
	if err != nil {
		c.log.Warn("the certificate has changed and is no good: the one before is used on", "error", err)
		return c.current, nil
	}
	c.current = fresh
	c.log.Info("the certificate was read again", "expires", fresh.Leaf.NotAfter)
	return fresh, nil
}

// mark looks at both files; one that is not there has no mark.
func (c *certificate) mark() (marks [2]fileMark) {
	for i, path := range []string{c.files.Cert, c.files.Key} {
		if info, err := os.Stat(path); err == nil {
			marks[i] = fileMark{info.Size(), info.ModTime()}
		}
	}
	return marks
}

// read returns what the files have.
func (f tlsFiles) read() (*tls.Certificate, error) {
	cert, err := readOwn(keyCert, f.Cert, maxPEM, ownfile.Needs{})
	if err != nil {
		return nil, usagef("%w", err)
	}
	key, err := readOwn(keyKey, f.Key, maxPEM, ownfile.Needs{})
	if err == nil {
		err = checkUnread(f.Key)
	}
	if err != nil {
		return nil, usagef("%w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, usagef("%s %s with %s %s: %w", keyCert, quoted(f.Cert), keyKey, quoted(f.Key), err)
	}
	return &pair, nil
}

// checkUnread refuses a key that everybody can read. Who else may is up to who gave it
// out: a service's group, for one.
func checkUnread(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%s %s: %w", keyKey, quoted(path), withoutPath(err))
	}
	const everybody fs.FileMode = 0o007
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&everybody != 0 {
		return hinted(fmt.Errorf("%s %s: everybody can read it (mode %04o)", keyKey, quoted(path), mode), "chmod o= %s", shellWord(path))
	}
	return nil
}
