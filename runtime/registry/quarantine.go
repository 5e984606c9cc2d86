package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/plainfile"
	"github.com/hutch-run/hutch/runtime/worker"
)

const (
	defaultDeaths      = 5
	defaultDeathWindow = 10 * time.Minute
	// maxQuarantined bounds one record when it is read back.
	maxQuarantined = 64 << 10
)

// Quarantined is a module that is not run any more, because it kept taking its
// workers down. It is about these bytes: another version of the file is another
// module.
type Quarantined struct {
	Module string    `json:"module"` // file name, as it was then
	Digest string    `json:"digest"`
	Reason string    `json:"reason"` // what happened, and the command that ends it
	Since  time.Time `json:"since"`
}

// quarantine remembers, by digest, how workers died of late, and which modules
// are quarantined. Each of these is a file too, so that other processes and the
// next start know; a file that is removed is a release.
type quarantine struct {
	dir    string // "": this process alone knows
	most   int
	window time.Duration

	mu     sync.Mutex
	deaths map[string][]death
	held   map[string]Quarantined
	// unsaved are those of held that have no file.
	unsaved map[string]bool
}

// death is one worker that a module took down.
type death struct {
	at  time.Time
	how string
}

func newQuarantine(o Options) (*quarantine, error) {
	q := &quarantine{
		dir: o.QuarantineDir, most: o.Deaths, window: o.DeathWindow,
		deaths: map[string][]death{}, held: map[string]Quarantined{}, unsaved: map[string]bool{},
	}
	if q.dir == "" {
		return q, nil
	}
	if err := os.MkdirAll(q.dir, 0o700); err != nil {
		return nil, err
	}
	_, err := q.reload()
	return q, err
}

// died notes a death and returns the record that it led to, if it was one too
// many.
func (q *quarantine) died(name, digest, how string, now time.Time) (Quarantined, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, held := q.held[digest]; held {
		return Quarantined{}, false
	}
	maps.DeleteFunc(q.deaths, func(_ string, d []death) bool { return now.Sub(d[len(d)-1].at) > q.window })
	recent := slices.DeleteFunc(q.deaths[digest], func(d death) bool { return now.Sub(d.at) > q.window })
	recent = append(recent, death{now, how})
	q.deaths[digest] = recent
	if len(recent) < q.most {
		return Quarantined{}, false
	}
	delete(q.deaths, digest)
	held := Quarantined{Module: name, Digest: digest, Reason: q.reason(name, recent), Since: now.UTC().Truncate(time.Second)}
	q.held[digest], q.unsaved[digest] = held, true
	return held, true
}

func (q *quarantine) reason(name string, deaths []death) string {
	counts := map[string]int{}
	for _, d := range deaths {
		counts[d.how]++
	}
	var how []string
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		how = append(how, fmt.Sprintf("%d by %s", counts[word], word))
	}
	return fmt.Sprintf("quarantined: took its worker down %d times within %v (%s): replace the file, or hutch tools release %s",
		len(deaths), q.window, strings.Join(how, ", "), shellWord(name))
}

// save writes a record down.
func (q *quarantine) save(held Quarantined) error {
	if q.dir == "" {
		return nil
	}
	raw, err := rawjson.Marshal(held)
	if err == nil {
		err = plainfile.Replace(quarantineFile(q.dir, held.Digest), recordTemp, raw)
	}
	if err == nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.unsaved, held.Digest)
	}
	return err
}

// of returns the record of a digest, if it is quarantined.
func (q *quarantine) of(digest string) (Quarantined, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	held, ok := q.held[digest]
	return held, ok
}

// reload brings the memory up to date with the folder and reports whether it
// had to change.
func (q *quarantine) reload() (changed bool, err error) {
	if q.dir == "" {
		return false, nil
	}
	found, err := readQuarantine(q.dir)
	if err != nil {
		return false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for digest := range q.held {
		if _, still := found[digest]; !still && !q.unsaved[digest] {
			delete(q.held, digest)
			changed = true
		}
	}
	for digest, record := range found {
		if _, known := q.held[digest]; !known {
			q.held[digest] = record
			changed = true
		}
	}
	return changed, nil
}

func quarantineFile(dir, digest string) string { return filepath.Join(dir, digest+".json") }

var quarantineName = regexp.MustCompile(`^([0-9a-f]{64})\.json$`)

// readQuarantine returns what is in the folder, by digest. A record that cannot
// be read still counts: the file's name says which module it is about.
func readQuarantine(dir string) (map[string]Quarantined, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]Quarantined{}
	for _, e := range entries {
		name := quarantineName.FindStringSubmatch(e.Name())
		if name == nil {
			continue
		}
		record := Quarantined{}
		raw, err := plainfile.Read(filepath.Join(dir, e.Name()), maxQuarantined)
		if errors.Is(err, fs.ErrNotExist) {
			continue // released meanwhile
		}
		if err != nil || strictJSON(raw, &record) != nil || record.Reason == "" {
			record = Quarantined{Reason: "quarantined: the record of why is damaged: hutch tools release sha256:" + name[1]}
		}
		record.Digest = name[1]
		found[record.Digest] = record
	}
	return found, nil
}

// QuarantinedIn returns the modules that are quarantined in dir, sorted by digest.
func QuarantinedIn(dir string) ([]Quarantined, error) {
	found, err := readQuarantine(dir)
	var all []Quarantined
	for _, digest := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[digest])
	}
	return all, err
}

// Release lets modules run again that were quarantined in dir: those whose file
// was called name, or the one whose digest it is ("sha256:" may stand before it).
// It returns what it released, sorted by digest; nothing is no error. A registry
// on the same folder notices when it is refreshed.
func Release(dir, name string) ([]Quarantined, error) {
	found, err := readQuarantine(dir)
	if err != nil {
		return nil, err
	}
	var released []Quarantined
	for _, digest := range slices.Sorted(maps.Keys(found)) {
		if found[digest].Module != name && digest != strings.TrimPrefix(name, "sha256:") {
			continue
		}
		if err := plainfile.Remove(quarantineFile(dir, digest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return released, err
		}
		released = append(released, found[digest])
	}
	return released, nil
}

// Died counts a worker that m took down, for worker.Options.Died. A module with
// too many of them is quarantined: it is held, like one that waits for a grant.
func (r *Registry) Died(m worker.Module, how string) {
	held, tooMany := r.quarantine.died(m.Name, m.Digest, how, time.Now())
	if !tooMany {
		return
	}
	r.o.Logger.Error("module quarantined", "module", m.Name, "digest", m.Digest, "reason", held.Reason)
	if err := r.quarantine.save(held); err != nil {
		r.o.Logger.Error("the next start will not know of the quarantine", "module", m.Name, "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed.Load() {
		r.publishLocked(r.current.Load())
	}
}

// Refresh looks whether another process quarantined or released a module, and
// makes it so here: at once for modules that are known, and over is closed when
// those are admitted that were not, or a newer set of modules came.
func (r *Registry) Refresh(ctx context.Context) (over <-chan struct{}) {
	changed, err := r.quarantine.reload()
	if err != nil {
		r.o.Logger.Warn("quarantine not read", "error", err)
	}
	if !changed {
		done := make(chan struct{})
		close(done)
		return done
	}
	r.applying.Lock()
	defer r.applying.Unlock()
	return r.begin(ctx, r.lastWanted())
}

// Quarantined returns the modules that are quarantined, in no particular order.
func (r *Registry) Quarantined() []Quarantined {
	r.quarantine.mu.Lock()
	defer r.quarantine.mu.Unlock()
	return slices.Collect(maps.Values(r.quarantine.held))
}

// guarded asks the quarantine before the policy, for every caller and tool.
type guarded struct {
	policy     Policy
	quarantine *quarantine
}

func (g guarded) Decide(c tool.Caller, m tool.Module, s tool.Spec) tool.Decision {
	d := g.policy.Decide(c, m, s)
	if held, ok := g.quarantine.of(m.Digest); ok && d.Status != tool.Rejected {
		return tool.Decision{Status: tool.Held, Reason: held.Reason}
	}
	return d
}

// A quarantinedError is why a module that nobody knows yet is not looked at.
type quarantinedError struct{ reason string }

func (e *quarantinedError) Error() string { return e.reason }

// shellWord quotes a file name for a command that is shown, if it has to be.
func shellWord(name string) string {
	if name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == "" && name[0] != '-' {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
