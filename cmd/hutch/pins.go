package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/store"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

// pins remember which version of each module serves, over restarts, so that one
// that says or asks something else waits for a person. A process that does not own
// the state folder has no store: it reads the pins once, and keeps none.
type pins struct {
	db   *store.DB // nil without
	book *capability.Book
	log  *slog.Logger
	// shipped are the names of the modules that came with the program, which are
	// what they are.
	shipped map[string]bool

	// serving are the digests of kept by name, for those who must not wait: mu is held
	// while the disk and the registry are asked, and the registry asks with a lock of
	// its own held. It never changes; tell puts another in its place.
	serving atomic.Pointer[map[string]string]

	mu   sync.Mutex // guards what is below
	kept map[string]pinned
	// failing is why the last change was not kept, which is told once.
	failing error
}

// pinned is what is known about the version of a module that serves.
type pinned struct {
	capability.Pin
	rank int64
}

// openPins reads what served before: from the store, or without one, from whoever
// has it.
func openPins(ctx context.Context, db *store.DB, cfg Config, book *capability.Book, set *toolswasm.Set, log *slog.Logger) (*pins, error) {
	p := &pins{db: db, book: book, log: log, shipped: map[string]bool{}, kept: map[string]pinned{}}
	for _, m := range set.Modules() {
		p.shipped[m.Name] = true
	}
	read := cfg.lookAtPins
	if db != nil {
		read = db.Pins
	}
	all, err := read(ctx)
	if err != nil {
		return nil, err
	}
	for _, pin := range all {
		p.kept[pin.Module] = pinned{capability.Pin{Digest: pin.Digest, Definitions: pin.Definitions}, pin.Rank}
	}
	p.publish()
	return p, nil
}

// pinsPath is where an owner tells its pins.
const pinsPath = "/control/v1/pins"

// lookAtPins returns the pins of a state folder that this process does not own.
func (cfg Config) lookAtPins(ctx context.Context) ([]store.Pin, error) {
	return lookAt(ctx, cfg, pinsPath, func(db *store.DB) ([]store.Pin, error) { return db.Pins(ctx) })
}

// tellPins answers at pinsPath.
func (a *App) tellPins(w http.ResponseWriter, r *http.Request) {
	all, err := a.db.Pins(r.Context())
	tell(w, all, err)
}

// rankPath is where an owner tells which version of a module was accepted how late.
const rankPath = "/control/v1/pins/rank"

// rank is [store.DB.PinRank], wherever the store is.
func (a *App) rank(ctx context.Context, module, digest string) (int64, error) {
	if a.db != nil {
		return a.db.PinRank(ctx, module, digest)
	}
	about := url.Values{"module": {module}, "digest": {digest}}
	return lookAt(ctx, a.cfg, rankPath+"?"+about.Encode(), func(db *store.DB) (int64, error) { return db.PinRank(ctx, module, digest) })
}

// tellRank answers at rankPath.
func (a *App) tellRank(w http.ResponseWriter, r *http.Request) {
	rank, err := a.db.PinRank(r.Context(), r.URL.Query().Get("module"), r.URL.Query().Get("digest"))
	tell(w, rank, err)
}

// digest is what [registry.Options].Pinned asks for. What the policy names goes
// first; modules that came with the program are what they are. It waits for nothing.
func (p *pins) digest(c tool.Candidate) string {
	if c.Shipped {
		return ""
	}
	if entry, ok := p.book.Policy().Entry(c.Name); ok && entry.Digest != "" {
		return entry.Digest
	}
	return (*p.serving.Load())[c.Name]
}

// expect prepares for candidates: it finds out which of them served before and were
// replaced, and what the pinned versions call themselves, from described, which says
// what is known about a digest.
func (p *pins) expect(ctx context.Context, wanted []tool.Candidate, described func(digest string) (tool.Description, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range wanted {
		pin, ok := p.kept[c.Name]
		if !ok || c.Shipped {
			continue
		}
		if pin.Version == "" {
			if d, err := described(pin.Digest); err == nil {
				pin.Version = d.Version
			}
		}
		if c.Digest != "" && c.Digest != pin.Digest {
			pin.Before = p.before(ctx, c, pin)
		}
		p.kept[c.Name] = pin
	}
	p.tell()
}

// before returns the candidate's digest if it was accepted earlier than the pin.
func (p *pins) before(ctx context.Context, c tool.Candidate, pin pinned) []string {
	if p.db == nil {
		return nil
	}
	rank, err := p.db.PinRank(ctx, c.Name, c.Digest)
	if err != nil {
		p.log.Error("it cannot be told whether a module is an older version", "module", c.Name, "error", err)
	}
	if err != nil || 0 < rank && rank < pin.rank { // what cannot be told waits too
		return []string{c.Digest}
	}
	return nil
}

// keep pins what serves now, as serving says when its turn has come: an older
// answer never follows a newer one.
func (p *pins) keep(ctx context.Context, serving func() []registry.Module) {
	if p.db == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var changed []registry.Module
	for _, m := range serving() {
		old := p.kept[m.Name]
		if m.Unconfirmed && old.Digest != "" && old.Digest != m.Serving {
			continue // nothing but a manifest vouches for it: what works stays the accepted one
		}
		if !m.Shipped && m.Serving != "" && m.Status == tool.Ready && (old.Digest != m.Serving || old.Definitions != m.Definitions) {
			changed = append(changed, m)
		}
	}
	if len(changed) == 0 {
		return
	}
	var failed []error
	for some := range slices.Chunk(changed, pinsAtOnce) {
		failed = append(failed, p.pin(ctx, some))
	}
	p.tellFailing(errors.Join(failed...))
	p.tell()
}

// pinsAtOnce is how many pins are written in one change: each change waits for the
// disk, and holds up all others meanwhile.
const pinsAtOnce = 100

// pin keeps that these modules serve, as far as it returns no error. The lock is
// held.
func (p *pins) pin(ctx context.Context, modules []registry.Module) error {
	ranks := make([]int64, len(modules)) // 0: not kept
	var refused []error
	err := p.db.Update(ctx, func(tx store.Tx) error {
		for i, m := range modules {
			var err error
			if ranks[i], err = tx.SetPin(m.Name, m.Serving, m.Definitions); err != nil {
				refused = append(refused, fmt.Errorf("%s: %w", m.Name, err)) // the store's own error ends Update too
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, m := range modules {
		if ranks[i] == 0 {
			continue
		}
		requests, err := capability.ParseRequests(m.Requests)
		if err != nil {
			p.log.Error("a module is ready though its requests cannot be read", "module", m.Name, "error", err)
			continue
		}
		p.kept[m.Name] = pinned{capability.Pin{Digest: m.Serving, Definitions: m.Definitions, Version: m.Version, Requests: requests}, ranks[i]}
	}
	return errors.Join(refused...)
}

// tellFailing logs why something is not kept, once as long as it stays so.
func (p *pins) tellFailing(err error) {
	if err != nil && (p.failing == nil || p.failing.Error() != err.Error()) {
		p.log.Error("which versions of modules serve cannot be kept", "error", abi.OneLine(err.Error(), maxReason))
	}
	p.failing = err
}

// tell hands the book all pins, also those of modules that are not there yet, and
// publishes them. The lock is held.
func (p *pins) tell() {
	p.publish()
	all := map[string]capability.Pin{}
	for name, pin := range p.kept {
		if !p.shipped[name] {
			all[name] = pin.Pin
		}
	}
	p.book.SetPins(all)
}

// publish makes what is kept what digest answers. The lock is held.
func (p *pins) publish() {
	now := make(map[string]string, len(p.kept))
	for name, pin := range p.kept {
		now[name] = pin.Digest
	}
	p.serving.Store(&now)
}

// digests are all that is pinned.
func (p *pins) digests() []string {
	return slices.Collect(maps.Values(*p.serving.Load()))
}

// accept makes a version of a module that asks for nothing the one that others of it
// are measured by, once that is kept.
func (p *pins) accept(module string, b capability.Binding, rank int64, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept[module] = pinned{capability.Pin{Digest: b.Digest, Definitions: b.Definitions, Version: version}, rank}
	p.tell()
}
