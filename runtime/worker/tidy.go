package worker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect"
)

// CodeDigest names a module's compiled code, by what Module.Bytes returns. Files
// that differ in their custom sections alone, such as a description stamped into
// one, or scripts for one engine, share it.
func CodeDigest(wasm []byte) string {
	sum := sha256.Sum256(dialect.Compiled(wasm))
	return hex.EncodeToString(sum[:])
}

// Tidy removes compiled code until what is kept fits Options.CacheBytes, the least
// recently used first. Code that a worker of this pool uses stays, and so does
// what used has by its [CodeDigest]. It disturbs nobody: code that is gone is made
// again when it is needed.
func (p *Pool) Tidy(used map[string]bool) {
	if p.cache.dir == "" {
		return
	}
	p.cache.sweep()
	p.cache.tidy(p.o.CacheBytes, func(code string) bool { return used[code] || p.runs(code) })
}

// runs reports whether a worker of the pool runs that code, or is about to.
func (p *Pool) runs(code string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.procs {
		if s.codeIs(code) {
			return true
		}
	}
	for _, s := range p.slots {
		if s.codeIs(code) {
			return true
		}
	}
	return false
}

func (s *slot) codeIs(code string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.code == code
}

// compiledCode is one finished folder of the cache.
type compiledCode struct {
	code string
	size int64
	used time.Time
}

// tidy removes finished folders until the rest has at most budget bytes.
func (c *cacheFolder) tidy(budget int64, inUse func(code string) bool) {
	all, err := c.list()
	total := int64(0)
	for _, code := range all {
		total += code.size
	}
	slices.SortFunc(all, func(a, b compiledCode) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.code, b.code))
	})
	for _, code := range all {
		if total <= budget {
			break
		}
		gone, failed := c.removeUnused(code, inUse)
		err = errors.Join(err, failed)
		if gone {
			total -= code.size
		}
	}
	if err != nil {
		c.log.Warn("compiled code not tidied", "err", err)
	}
	if total > budget {
		c.log.Warn("compiled code in use takes more room than it should", "bytes", total, "most", budget)
	}
}

// list returns what is finished. What else lies there is somebody else's, or put
// away when it is in the way.
func (c *cacheFolder) list() ([]compiledCode, error) {
	entries, err := os.ReadDir(c.dir)
	var all []compiledCode
	for _, e := range entries {
		if !abi.IsDigest(e.Name()) {
			continue
		}
		path := filepath.Join(c.dir, e.Name())
		info, failed := os.Lstat(path)
		if errors.Is(failed, fs.ErrNotExist) {
			continue
		}
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		// Of what is no finished code, the size of what was looked at will do.
		size, _ := compiledSize(path)
		all = append(all, compiledCode{e.Name(), size, info.ModTime()})
	}
	return all, err
}

// removeUnused removes code that nobody uses nor has taken since it was listed.
func (c *cacheFolder) removeUnused(code compiledCode, inUse func(string) bool) (gone bool, err error) {
	e := cacheEntry{cache: c, final: filepath.Join(c.dir, code.code)}
	c.opening.Lock()
	defer c.opening.Unlock()
	info, err := os.Lstat(e.final)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || !info.ModTime().Equal(code.used) || inUse(code.code) {
		return false, err
	}
	err = e.remove()
	return err == nil, err
}
