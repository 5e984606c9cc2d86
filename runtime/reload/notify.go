package reload

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// notifier is what is needed of fsnotify.
type notifier interface {
	Add(path string) error
	Remove(path string) error
	Notices() (<-chan fsnotify.Event, <-chan error)
	Close() error
}

type fsNotifier struct{ *fsnotify.Watcher }

func (n fsNotifier) Notices() (<-chan fsnotify.Event, <-chan error) { return n.Events, n.Errors }

func newNotifier() (notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return fsNotifier{w}, nil
}

// notices turns notifications into "look again". Without a notifier it never
// says so, and the periodic scan does the work.
type notices struct {
	n       notifier
	events  <-chan fsnotify.Event
	errors  <-chan error
	logger  *slog.Logger
	watched map[string]os.FileInfo // what is watched, as it was when the watch began
	wanted  map[string]interest    // what should be, by path
	failed  bool                   // a warning was given
}

func (w *Watcher) startNotifier() *notices {
	n := &notices{logger: w.o.Logger, watched: map[string]os.FileInfo{}}
	inner, err := w.o.notify()
	if err != nil {
		n.degraded(err)
		return n
	}
	n.n = inner
	n.events, n.errors = inner.Notices()
	return n
}

func (n *notices) degraded(err error) {
	if !n.failed {
		n.logger.Warn("changes in tool folders are noticed by looking only", "error", err)
	}
	n.failed = true
}

func (n *notices) close(logger *slog.Logger) {
	if n.n == nil {
		return
	}
	if err := n.n.Close(); err != nil {
		logger.Warn("closing the folder watch", "error", err)
	}
}

// watch makes sure that each folder is watched as it is now, and with it the way
// there: a folder that was replaced is another one, though its name is the same.
func (n *notices) watch(folders []*folder) {
	if n.n == nil {
		return
	}
	n.wanted = interests(folders)
	wanted := map[string]os.FileInfo{}
	for path := range n.wanted {
		if fi, err := os.Stat(path); err == nil && fi.IsDir() {
			wanted[path] = fi
		}
	}
	for path, fi := range n.watched {
		if now, ok := wanted[path]; !ok || !os.SameFile(fi, now) {
			// It fails for a folder that is gone: the watch went with it.
			if err := n.n.Remove(path); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
				n.logger.Debug("ending a folder watch", "folder", path, "error", err)
			}
			delete(n.watched, path)
		}
	}
	for path, fi := range wanted {
		if n.watched[path] != nil {
			continue
		}
		err := n.n.Add(path)
		switch {
		case err == nil:
		case n.wanted[path].all:
			n.degraded(err)
			continue
		default: // a folder above may be nobody's to read
			n.logger.Debug("folder on the way to a tool folder is not watched", "folder", path, "error", err)
			continue
		}
		n.watched[path] = fi
	}
}

// wait returns true if something changed, false after idle or at ctx's end.
func (n *notices) wait(ctx context.Context, idle time.Duration) bool {
	t := time.NewTimer(idle)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
			return false
		case e, ok := <-n.events:
			if !ok {
				n.events = nil
			} else if n.matters(e) {
				return true
			}
		case err, ok := <-n.errors:
			if !ok {
				n.errors = nil
				continue
			}
			// Events were lost, or the watch is broken: set it up anew.
			n.logger.Debug("folder watch", "error", err)
			clear(n.watched)
			return true
		}
	}
}

// drain drops what is queued: the scan that follows sees it all.
func (n *notices) drain() {
	for {
		select {
		case e, ok := <-n.events:
			if !ok {
				n.events = nil
			}
			n.forget(e)
		case _, ok := <-n.errors:
			if !ok {
				n.errors = nil
			}
			clear(n.watched)
		default:
			return
		}
	}
}

// matters leaves out what cannot change the set: writes to files that are no
// modules, and their attributes. In a tool folder appearing and vanishing names
// matter whatever they are called, for a symlink may lead through them; on the way
// to one, only the names that lead on do.
func (n *notices) matters(e fsnotify.Event) bool {
	n.forget(e)
	base := filepath.Base(e.Name)
	if e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		_, self := n.wanted[e.Name]
		on := n.wanted[filepath.Dir(e.Name)]
		return self || on.all || on.names[base]
	}
	return n.wanted[filepath.Dir(e.Name)].all && isModule(base)
}

// forget notes that a watched folder itself went away: its watch went with it,
// and a folder that takes its place, even with the same inode, needs a new one.
func (n *notices) forget(e fsnotify.Event) {
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		delete(n.watched, e.Name)
	}
}
