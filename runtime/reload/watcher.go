package reload

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
)

// MaxFiles is how many modules of one folder are looked at by default.
const MaxFiles = 10_000

// Options configure a [Watcher]. Zero fields mean their defaults.
type Options struct {
	// Blobs takes the bytes of every module found. Required.
	Blobs *Blobs
	// MaxBytes is the largest module that is read. Default 16 MiB.
	MaxBytes int64
	// MaxFiles is how many modules of one folder are looked at, in the order
	// of their names. Default [MaxFiles].
	MaxFiles int
	// Stable is how long a file must be left alone before it is read, unless it
	// was renamed into place with bytes that Blobs has. Default 200 ms.
	Stable time.Duration
	// Settle is how long changes are collected after one was told; the first one
	// after that is looked for at once. Default 250 ms, so that a storm of changes
	// is told at most four times a second. It is also how long a file must be
	// missing until it is gone: some programs take one away before they write it.
	// Scans keep a distance of ten times what they take, but not over a second.
	Settle time.Duration
	// Rescan is how often the folders are looked at without being told to,
	// for changes that no notification came for. Default 30 s.
	Rescan time.Duration
	// Logger gets warnings. Default: nothing is logged.
	Logger *slog.Logger

	notify func() (notifier, error) // tests lose events with it
	step   func(done string)        // tests change files between steps with it
}

func (o Options) withDefaults() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = 16 << 20
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = MaxFiles
	}
	if o.Stable == 0 {
		o.Stable = 200 * time.Millisecond
	}
	if o.Settle == 0 {
		o.Settle = 250 * time.Millisecond
	}
	if o.Rescan == 0 {
		o.Rescan = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.notify == nil {
		o.notify = newNotifier
	}
	if o.step == nil {
		o.step = func(string) {}
	}
	return o
}

// Watcher keeps an eye on folders of modules. Its methods must not be called
// at the same time.
type Watcher struct {
	o       Options
	folders []*folder
}

// New returns a watcher of folders, in order of precedence. None needs to
// exist yet. A folder named twice counts once.
func New(folders []string, o Options) *Watcher {
	w := &Watcher{o: o.withDefaults()}
	for _, path := range folders {
		path = filepath.Clean(path)
		if !slices.ContainsFunc(w.folders, func(f *folder) bool { return f.path == path }) {
			w.folders = append(w.folders, &folder{path: path})
		}
	}
	return w
}

// Scan returns what the folders hold now, for a command that looks once. Files
// that are being written get up to ten times Stable to be finished; those that
// are not are left out.
func (w *Watcher) Scan(ctx context.Context) []tool.Candidate {
	for range 10 {
		if moving := w.scanAll(0); !moving || !sleep(ctx, w.o.Stable) {
			break
		}
	}
	return w.candidates()
}

// Run hands emit the whole set of candidates at once, and again whenever it
// changes, until ctx ends. They are sorted by folder, in the order given to
// [New], and name; two folders may offer the same name. emit is called from
// Run's own goroutine; the slice is emit's. A file still being written is not
// in the set, or is there as it was before.
func (w *Watcher) Run(ctx context.Context, emit func([]tool.Candidate)) {
	n := w.startNotifier()
	defer func() { n.close(w.o.Logger) }()
	var last []tool.Candidate
	var before time.Duration // what the scan before took
	for first := true; ctx.Err() == nil; first = false {
		began := time.Now()
		n.watch(w.folders) // before the scan: what comes after it is notified
		moving := w.scanAll(w.o.Settle)
		ended := time.Now() // before what is done with it: that may compile
		took := ended.Sub(began)
		pause := max(w.o.Settle/10, rest(took, before, w.o.Settle))
		before = took
		if now := w.candidates(); first || !slices.EqualFunc(now, last, equal) {
			last, pause = now, max(w.o.Settle, pause)
			emit(slices.Clone(now))
		}
		w.wait(ctx, n, moving, ended.Add(pause))
	}
}

// rest is how long nothing is scanned, so that a storm in a large folder keeps no
// core busy. One scan that was slow, as on a busy machine, says nothing about the next.
func rest(took, before, settle time.Duration) time.Duration {
	return min(10*min(took, before), 4*settle)
}

// wait returns when there is reason to scan again, not before next.
func (w *Watcher) wait(ctx context.Context, n *notices, moving bool, next time.Time) {
	idle := w.o.Rescan
	if moving {
		idle = w.o.Stable
	}
	if !n.wait(ctx, max(idle, time.Until(next))) || ctx.Err() != nil {
		return
	}
	sleep(ctx, time.Until(next))
	n.drain()
}

// sleep reports whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// scanAll brings all folders up to date; what is missing is gone after grace.
func (w *Watcher) scanAll(grace time.Duration) (moving bool) {
	now := time.Now()
	for _, f := range w.folders {
		if w.scan(f, now, grace) {
			moving = true
		}
	}
	w.o.Blobs.learn(w.candidates())
	return moving
}

func (w *Watcher) candidates() []tool.Candidate {
	var all []tool.Candidate
	for _, f := range w.folders {
		from := len(all)
		for _, v := range f.files {
			if v.known {
				all = append(all, v.candidate)
			}
		}
		slices.SortFunc(all[from:], func(a, b tool.Candidate) int {
			return strings.Compare(a.Name, b.Name)
		})
	}
	return all
}

func equal(a, b tool.Candidate) bool {
	sameErr := (a.Err == nil) == (b.Err == nil) && (a.Err == nil || a.Err.Error() == b.Err.Error())
	a.Err, b.Err = nil, nil
	return sameErr && a == b
}

// Crowded is a folder with more modules than are looked at. The first ones by name
// are; the rest is ignored until there is room.
type Crowded struct {
	Folder      string
	Files, Most int
}

func (c Crowded) String() string {
	return fmt.Sprintf("%s holds %d modules, at most %d: those after the first %d by name are ignored", c.Folder, c.Files, c.Most, c.Most)
}

// Crowded returns the folders that the last look found too full.
func (w *Watcher) Crowded() []Crowded {
	var all []Crowded
	for _, f := range w.folders {
		if f.count > w.o.MaxFiles {
			all = append(all, Crowded{f.path, f.count, w.o.MaxFiles})
		}
	}
	return all
}
