package reload

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
)

// folder is one watched folder and what the last scan knew of it.
type folder struct {
	path  string
	files map[string]*file
	// count is how many modules it held, ignored ones as well.
	count int
	// self is the folder as it was when it was last there.
	self fs.FileInfo
	// gone is when it was first missing, zero if it was there at the last look.
	gone time.Time
	// warned keeps a warning from being repeated at each scan.
	warned string
}

// file is one module file. Its candidate is the last one that was whole: while
// a new version is being written, the old one stays.
type file struct {
	candidate tool.Candidate
	known     bool        // candidate is set
	read      fs.FileInfo // what candidate was made from; nil if there was nothing to read
	pending   fs.FileInfo // an unsettled version
	since     time.Time   // when pending was first seen as it is
	gone      time.Time   // when it was first missing, zero if it was there
	twin      bool        // another file has the name already, for some file systems
}

// scan brings f up to date and reports whether something is still moving.
func (w *Watcher) scan(f *folder, now time.Time, grace time.Duration) (moving bool) {
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return w.lost(f, err, now, grace)
	}
	defer func() {
		if err := root.Close(); err != nil {
			w.o.Logger.Warn("closing a tool folder", "folder", f.path, "error", err)
		}
	}()
	names, err := w.names(root, f)
	if err != nil {
		return w.lost(f, err, now, grace)
	}
	f.gone = time.Time{}
	found := make(map[string]*file, len(names))
	owners := f.owners(names)
	for _, name := range names {
		v := f.files[name]
		if v == nil {
			v = &file{}
		}
		v.gone = time.Time{}
		if owner := owners[folded(name)]; owner != name {
			shown, _ := named(name)
			v.reject(f, shown, twin(owner))
			v.twin = true
		} else if v.twin {
			*v = file{} // the other one is gone
		}
		if v.twin {
			found[name] = v
			continue
		}
		if w.look(root, f, name, v, now) {
			moving = true
		}
		found[name] = v
	}
	if f.count <= w.o.MaxFiles { // else room is needed
		moving = f.linger(found, owners, now, grace) || moving
	}
	f.files = found
	return moving
}

// linger keeps in found what was known and is missing for less than grace, for
// somebody may be about to write it anew. What is there under another name now was
// renamed, and does not linger. It reports whether anything does.
func (f *folder) linger(found map[string]*file, owners map[string]string, now time.Time, grace time.Duration) (lingers bool) {
	there := digests(found)
	for name, v := range f.files {
		if found[name] != nil || !v.known || owners[folded(name)] != "" || there[v.candidate.Digest] {
			continue
		}
		if v.gone.IsZero() {
			v.gone = now
		}
		if now.Sub(v.gone) < grace {
			found[name], lingers = v, true
		}
	}
	return lingers
}

// digests returns those of the bytes that files have.
func digests(files map[string]*file) map[string]bool {
	all := make(map[string]bool, len(files))
	for _, v := range files {
		if v.known && v.candidate.Err == nil {
			all[v.candidate.Digest] = true
		}
	}
	return all
}

// owners says which of several names that some file systems cannot tell apart
// is loaded: the one that was before, else the first. The other would replace it
// as soon as somebody copied the folder.
func (f *folder) owners(names []string) map[string]string {
	owners := make(map[string]string, len(names))
	for _, name := range names {
		key := folded(name)
		owner, taken := owners[key]
		before := f.files[name]
		if !taken || before != nil && !before.twin && (f.files[owner] == nil || f.files[owner].twin) {
			owners[key] = name
		}
	}
	return owners
}

// twin is the error of a file beside owner.
func twin(owner string) error {
	shown, _ := named(owner)
	return fmt.Errorf("differs from %s only in case or in how accents are encoded: rename one of them", shown)
}

// lost forgets a folder's modules because it is gone, if it is so for grace; till
// then it reports that something is moving. A folder that is there but cannot be
// read now keeps them.
func (w *Watcher) lost(f *folder, err error, now time.Time, grace time.Duration) (moving bool) {
	if !errors.Is(err, fs.ErrNotExist) {
		w.warn(f, "tool folder cannot be read", withoutPath(err))
		return false
	}
	if f.gone.IsZero() {
		f.gone = now
	}
	if len(f.files) > 0 && now.Sub(f.gone) < grace {
		return true
	}
	f.files, f.self, f.count = nil, nil, 0
	w.warn(f, "tool folder is missing: create it, it will be noticed", nil)
	return false
}

func (w *Watcher) warn(f *folder, text string, err error) {
	key := text + fmt.Sprint(err)
	if f.warned == key {
		return
	}
	f.warned = key
	attrs := []any{"folder", f.path}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	w.o.Logger.Warn(text, attrs...)
}

// names lists the module files of a folder, sorted, at most MaxFiles.
func (w *Watcher) names(root *os.Root, f *folder) (names []string, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if f.self, err = dir.Stat(); err != nil {
		return nil, err
	}
	for {
		batch, err := dir.ReadDir(512)
		for _, e := range batch {
			if isModule(e.Name()) {
				names = append(names, e.Name())
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	f.count = len(names)
	switch why := exposure(f.self); {
	case len(names) > w.o.MaxFiles:
		w.warn(f, "tool folder holds too many modules: the rest is ignored",
			fmt.Errorf("%d modules, at most %d", len(names), w.o.MaxFiles))
		names = names[:w.o.MaxFiles]
	case why != "":
		w.warn(f, "tool folder is not yours alone", errors.New(why))
	default:
		f.warned = ""
	}
	return names, nil
}

// look brings one file up to date and reports whether it is still moving.
func (w *Watcher) look(root *os.Root, f *folder, name string, v *file, now time.Time) bool {
	if shown, err := named(name); err != nil {
		v.reject(f, shown, err)
		return false
	}
	rel, err := resolve(root, f.path, name)
	if err != nil {
		return v.trouble(f, name, err)
	}
	fi, err := root.Lstat(rel)
	if err != nil {
		return v.trouble(f, name, err)
	}
	if v.known && v.read != nil && same(fi, v.read) && (v.candidate.Err != nil || w.o.Blobs.Hold(v.candidate.Digest, v.candidate.Size)) {
		v.pending = nil
		return false
	}
	take := w.store
	if fi.Mode().IsRegular() && !settled(fi, v.pending, v.since, now, w.o.Stable) {
		if v.pending != nil && same(fi, v.pending) {
			return true
		}
		if v.pending, v.since = fi, now; !arrived(fi, v.read) {
			return true
		}
		take = w.recall
	}
	err = w.load(root, f, name, rel, v, take)
	if errors.Is(err, errUnknown) {
		return true
	}
	if err != nil {
		return v.trouble(f, name, err)
	}
	v.pending = nil
	return false
}

// load makes the candidate of a file whose bytes it takes.
func (w *Watcher) load(root *os.Root, f *folder, name, rel string, v *file, take func(*os.File, fs.FileInfo) (string, error)) error {
	h, fi, err := open(root, rel)
	if err != nil {
		return err
	}
	w.o.step("opened")
	digest, err := take(h, fi)
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, errMoving) || errors.Is(err, errUnknown) {
		return err
	}
	var keep *keepError
	unkept := errors.As(err, &keep)
	if why := exposure(fi); why != "" && !unkept { // else it would be said at each look
		w.o.Logger.Warn("module file is not yours alone", "module", name, "folder", f.path, "error", why)
	}
	v.known, v.read = true, fi
	v.candidate = tool.Candidate{Name: name, Source: f.path, Digest: digest, Size: fi.Size()}
	if err != nil {
		v.candidate.Digest, v.candidate.Err = "", withoutPath(err)
	}
	if unkept {
		v.read = nil // the next look tries again
	}
	return nil
}

// trouble decides what an error at a file means: that it moved under our
// hands, which the next look will tell, or that it cannot be a module.
func (v *file) trouble(f *folder, name string, err error) (moving bool) {
	if errors.Is(err, errMoving) || errors.Is(err, fs.ErrNotExist) {
		v.pending = nil
		return true
	}
	v.reject(f, name, err)
	return false
}

func (v *file) reject(f *folder, name string, err error) {
	*v = file{known: true, candidate: tool.Candidate{Name: name, Source: f.path, Err: withoutPath(err)}}
}
