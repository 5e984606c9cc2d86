package registry

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/hutch-run/hutch/runtime/plainfile"
)

const (
	// quarantineTTL is how long a record is kept whose module is in no folder.
	quarantineTTL = 90 * 24 * time.Hour
	// maxOrphans is how many of those are kept at most, the newest.
	maxOrphans = 1000
)

// Tidy removes what is kept about modules that are in no folder any more, once it
// is old or there is too much of it: descriptions nobody has asked for, and
// quarantine records. It is for calling now and then, from any goroutine.
func (r *Registry) Tidy() {
	wanted := r.wantedDigests()
	_, err := tidy(r.cache.dir, recordName, cacheTTL, maxRecords, wanted)
	if err != nil {
		r.o.Logger.Warn("descriptions not tidied", "error", err)
	}
	released, err := tidy(r.quarantine.dir, recordName, quarantineTTL, maxOrphans, wanted)
	if err != nil {
		r.o.Logger.Warn("quarantine not tidied", "error", err)
	}
	if released > 0 {
		r.o.Logger.Info("quarantine records of modules that are gone were dropped", "records", released)
	}
}

// wantedDigests are those of all files, and of what serves.
func (r *Registry) wantedDigests() map[string]bool {
	wanted := map[string]bool{}
	for _, c := range r.lastWanted() {
		wanted[c.Digest] = true
		if pinned := r.o.Pinned(c); pinned != "" {
			wanted[pinned] = true
		}
	}
	for _, e := range r.current.Load().entries {
		if e.mount != nil {
			wanted[e.mount.def.digest] = true
		}
	}
	return wanted
}

// recordName matches the files that are ours, and has the digest of a record.
var recordName = regexp.MustCompile(`^(?:([0-9a-f]{64})\.json|` + recordTemp + `[0-9]+)$`)

// tidy removes files of dir that names matches: what is older than ttl, and all but
// the newest most. Those of a digest that is wanted stay, and count as new from now
// on: other processes may want other modules.
func tidy(dir string, names *regexp.Regexp, ttl time.Duration, most int, wanted map[string]bool) (removed int, err error) {
	if dir == "" {
		return 0, nil
	}
	entries, err := os.ReadDir(dir)
	var found []fs.FileInfo
	for _, e := range entries {
		name := names.FindStringSubmatch(e.Name())
		if name == nil {
			continue
		}
		if wanted[name[1]] {
			err = errors.Join(err, touch(filepath.Join(dir, e.Name()), e.Type()))
			continue
		}
		fi, failed := e.Info()
		if failed == nil {
			found = append(found, fi)
		} else if !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	slices.SortFunc(found, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for i, fi := range found {
		if i < most && time.Since(fi.ModTime()) <= ttl {
			continue
		}
		failed := plainfile.Remove(filepath.Join(dir, fi.Name()))
		switch {
		case failed == nil:
			removed++
		case !errors.Is(failed, fs.ErrNotExist):
			err = errors.Join(err, failed)
		}
	}
	return removed, err
}

// touch makes a plain file new, and leaves everything else as it is.
func touch(path string, kind fs.FileMode) error {
	if !kind.IsRegular() {
		return nil
	}
	now := time.Now()
	err := os.Chtimes(path, now, now)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
