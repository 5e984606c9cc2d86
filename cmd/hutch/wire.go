package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hutch-run/hutch/cmd/hutch/telemetry"
	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/host/guestlog"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/reload"
	"github.com/hutch-run/hutch/runtime/store"
	"github.com/hutch-run/hutch/runtime/worker"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

// App is what a [Config] becomes: folders are watched, what is found in them is
// admitted to a registry, and the registry's modules run in workers.
//
// [App.Run] is one goroutine that watches and admits, and has one for each of its
// chores. Everything else may be used from any goroutine, while Run runs or without
// it.
type App struct {
	cfg     Config
	log     *slog.Logger
	blobs   *reload.Blobs
	watcher *reload.Watcher
	pool    *worker.Pool
	modules *registry.Registry
	metrics *metrics
	shipped []tool.Candidate
	// policy is followed, and book what is in force of it.
	policy *policyFile
	// editing is held while the policy file is changed by us.
	editing sync.Mutex
	book    *capability.Book
	vault   *secrets.Vault
	logs    *guestlog.Log
	pins    *pins
	client  *fetch.Client
	db      *store.DB      // nil in a process that does not own the state directory
	keys    *access.Keys   // nil there too
	engine  *engine        // nil there too
	tracker *embedded      // nil there too, and where another is configured
	remote  *remoteTracker // that one, else nil
	crew    *crew          // nil where no agent takes part in a tracker
	// telemetry is told what happens; nil is off.
	telemetry *telemetry.T
	// certificate is what serve shows; nil if it shows none.
	certificate *certificate
	// borrowed is where such a process keeps what its tools keep, else nil.
	borrowed *borrower
	// fetch returns the bytes of a module that was found.
	fetch func(digest string) ([]byte, error)
	// tools are the registry's, counted.
	tools toolset
	// found is how many modules the last look at the folders offered.
	found atomic.Int64
	// ready is closed when the first look at the folders has been applied.
	ready chan struct{}
	// logged is what served when that was last logged; nil before ready.
	loggedMu sync.Mutex
	logged   []registry.Module
}

// NewApp opens the state directory and builds what runs on it; owned says that this
// process owns it. Nothing is watched, compiled or started yet. Close what it
// returns.
func NewApp(cfg Config, p program, log *slog.Logger, owned bool) (_ *App, err error) {
	st, err := openState(cfg.State)
	if err != nil {
		return nil, err
	}
	set, err := p.openShipped()
	if err != nil {
		return nil, err
	}
	a := &App{cfg: cfg, log: log, metrics: newMetrics(), ready: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if err := a.openGrants(st, p, set, owned); err != nil {
		return nil, err
	}
	if err := a.openTracker(context.Background(), p); err != nil { // opening bounds itself
		return nil, fmt.Errorf("tracker: %w", err)
	}
	if owned { // others are done before much could be told
		if a.telemetry, err = cfg.Telemetry.open(p, a.vault, a.log); err != nil {
			return nil, err
		}
	}
	if a.blobs, err = reload.OpenBlobs(st.modules()); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	a.watcher = reload.New(cfg.Tools, reload.Options{Blobs: a.blobs, Logger: a.log})
	died := func(m worker.Module, how string) { a.modules.Died(m, how) } // no worker runs before there is a registry
	if a.pool, err = newPool(cfg, st, p.worker, a.log, died); err != nil {
		return nil, err
	}
	a.shipped, a.fetch = candidatesOf(set), fetchFrom(set, a.blobs.Fetch)
	door, client := a.newDoor(p.web)
	a.client = client
	a.modules, err = registry.New(registry.Options{
		Workers: a.pool, Policy: told{a.book, cfg.decisionFlags(owned)}, Fetch: a.fetch, Grants: door, Redactor: a.vault.Redactor(), Pinned: a.pins.digest, Prefix: a.book.Prefix, Language: a.book.Language,
		CacheDir: st.descriptions(), Build: cfg.verdicts(), Limits: cfg.Limits.Call, Logger: a.log,
		QuarantineDir: st.quarantine(), Deaths: cfg.Limits.Deaths, DeathWindow: cfg.Limits.DeathWindow,
	})
	if err != nil {
		return nil, err
	}
	a.tools = meteredTools{next: a.modules, metrics: a.metrics, log: a.log}
	a.metrics.watch(a)
	if owned {
		a.engine, err = openEngine(context.Background(), cfg, p, a.db, a.waiting(), a.telemetry, a.log) // opening bounds itself
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

// openGrants opens the policy, the secrets and the store.
func (a *App) openGrants(st state, p program, set *toolswasm.Set, owned bool) (err error) {
	if a.policy, err = openPolicy(a.cfg, a.log); err != nil {
		return err
	}
	if a.book, err = a.openBook(set); err != nil {
		return err
	}
	if a.vault, err = openVault(a.cfg, p, a.log); err != nil {
		return err
	}
	a.log = slog.New(discreet{numbered{a.log.Handler()}, a.vault.Redactor()})
	ctx := context.Background() // opening bounds itself
	if a.db, err = openStore(ctx, a.cfg, owned, a.log); err != nil {
		return err
	}
	if a.db != nil {
		if a.keys, err = access.OpenKeys(ctx, a.db, nil); err != nil {
			return err
		}
	}
	a.logs = guestlog.New(guestlog.Options{Logger: a.log, Redact: a.vault.Redactor().Text})
	a.pins, err = openPins(ctx, a.db, a.cfg, a.book, set, a.log)
	return err
}

// verdicts names what decides about a module besides its bytes: a verdict that
// was kept under another memory limit may be wrong under this one.
func (cfg Config) verdicts() string {
	return fmt.Sprintf("%s, memory %d", readBuildInfo(), cfg.Limits.Call.MemoryBytes)
}

// newPool opens a pool of workers; died may be nil. One whose workers cannot be
// jailed, though they have to be, is an error before any module is touched.
func newPool(cfg Config, st state, command []string, log *slog.Logger, died func(worker.Module, string)) (*worker.Pool, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := cfg.Limits
	pool, err := worker.NewPool(worker.Options{
		Command: command, Image: slimWorker(log), CacheDir: st.compiled(), MemoryBudget: l.Workers,
		Calls: l.AtOnce, Queue: l.Queue, Rate: l.PerSecond, Heartbeat: l.Heartbeat, Died: died,
		RequireJail: cfg.RequireJail, Logger: log,
	})
	if errors.Is(err, worker.ErrCgo) {
		err = hinted(err, "build it with \"make\", or with CGO_ENABLED=0 in the environment")
	}
	if err != nil || !cfg.RequireJail {
		return pool, err
	}
	jail, err := pool.Jail(context.Background()) // bounds itself
	if err == nil {
		err = jail.Err()
	}
	if err != nil {
		return nil, errors.Join(unjailed(err), pool.Close())
	}
	return pool, nil
}

func unjailed(err error) error {
	return hinted(fmt.Errorf("--%s: %w", flagJail, err),
		"see what is missing with \"hutch doctor\", or leave --%s away and run only modules you trust", flagJail)
}

// Run watches the folders and admits what it finds until ctx ends. The first
// look waits a moment for files that are being written, so that what was put
// there just before the start is in the first answer.
func (a *App) Run(ctx context.Context) {
	var chores sync.WaitGroup
	defer chores.Wait()
	if a.tracker != nil {
		chores.Go(func() { a.guarded(func() { _ = a.tracker.Run(ctx) }) }) // it ends with ctx alone
	}
	found := a.watcher.Scan(ctx)
	<-a.offer(ctx, found)
	if ctx.Err() != nil {
		return
	}
	there := a.modules.Modules() // what was there from the start is summed up
	a.loggedMu.Lock()
	a.logged = there
	a.loggedMu.Unlock()
	a.warnOfAbsent(there)
	close(a.ready)
	chores.Go(func() { a.every(ctx, tidyEvery, a.prune) })
	chores.Go(func() { a.every(ctx, retryEvery, func() { a.modules.Retry(ctx); a.note(ctx) }) })
	chores.Go(func() { a.every(ctx, refreshEvery, func() { a.modules.Refresh(ctx) }) })
	chores.Go(func() { a.every(ctx, policyEvery, func() { a.followPolicy(ctx) }) })
	a.watcher.Run(ctx, func(found []tool.Candidate) {
		over := a.offer(ctx, found)
		a.note(ctx)
		chores.Go(func() { a.guarded(func() { <-over; a.note(ctx) }) })
	})
}

// How often an [App] does what nothing asks it to.
const (
	// tidyEvery is so often that nothing in use is ever taken for old by another
	// process on this state.
	tidyEvery = reload.BlobTTL / 24
	// retryEvery is how often modules are tried again that failed through no fault
	// of their own. A worker that keeps failing is rested by its pool besides.
	retryEvery = 15 * time.Second
	// refreshEvery is how soon a release or a quarantine of another process counts.
	refreshEvery = 2 * time.Second
	// policyEvery is how often the policy file is looked at; a change counts when it
	// is the same at two looks.
	policyEvery = 500 * time.Millisecond
)

// every does a chore now and then until ctx ends. One that panics is logged and
// done again.
func (a *App) every(ctx context.Context, pause time.Duration, chore func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		a.guarded(chore)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (a *App) guarded(chore func()) {
	defer func() {
		if v := recover(); v != nil {
			a.log.Error("a chore broke", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	chore()
}

// Load looks at the folders once, for a command that does not watch.
func (a *App) Load(ctx context.Context) error {
	<-a.offer(ctx, a.watcher.Scan(ctx))
	if ctx.Err() == nil {
		a.tidyCode() // nobody else does where hutch never serves
	}
	return ctx.Err()
}

// offer hands what was found to the registry, which closes over when all of it is
// known or was replaced.
func (a *App) offer(ctx context.Context, found []tool.Candidate) (over <-chan struct{}) {
	all := append(slices.Clone(a.shipped), found...)
	a.found.Store(int64(len(all)))
	a.modules.LearnPinned(ctx, all)
	a.pins.expect(ctx, all, a.modules.Described)
	return a.modules.Offer(ctx, all)
}

// note keeps and logs what serves now. What served is kept also while hutch stops, or
// else the version before would be the accepted one at the next start.
func (a *App) note(ctx context.Context) {
	a.pins.keep(context.WithoutCancel(ctx), a.modules.Modules)
	a.logChanges()
}

// prune removes bytes that nobody has needed for long: neither found in a folder
// nor still serving because what was found there does not load. Of compiled code
// and of what is kept about modules that are gone, it removes what is too much.
// What cannot be removed only takes up space, so that is a line in the log.
func (a *App) prune() {
	a.tidyCode()
	a.modules.Tidy()
	used := map[string]bool{}
	for _, m := range a.modules.Modules() {
		used[m.Digest], used[m.Serving] = true, true
	}
	for _, digest := range a.pins.digests() {
		used[digest] = true
	}
	if _, err := a.blobs.Prune(used); err != nil {
		a.log.Warn("kept modules not tidied", "error", err)
	}
}

func (a *App) tidyCode() {
	used := map[string]bool{}
	for _, m := range a.modules.Modules() {
		used[m.Code] = true
	}
	a.pool.Tidy(used)
}

// Ready returns nil once the folders have been looked at and what was in them
// is applied.
func (a *App) Ready() error {
	select {
	case <-a.ready:
		return nil
	default:
		known, _ := a.known()
		return fmt.Errorf("loading: %d of %d modules are known", known, a.found.Load())
	}
}

// Close ends all workers, whatever they do, and closes what was opened, which may
// be a part of it.
func (a *App) Close() (err error) {
	if a.engine != nil { // its runs call modules, and are kept in the store
		err = a.engine.Close()
	}
	a.crew.close()
	if a.tracker != nil {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		err = errors.Join(err, a.tracker.Close(ctx))
	}
	if a.remote != nil {
		a.remote.client.Close()
	}
	if a.modules != nil {
		err = errors.Join(err, a.modules.Close())
	}
	if a.pool != nil {
		err = errors.Join(err, a.pool.Close())
	}
	if a.client != nil {
		a.client.Close()
	}
	err = errors.Join(err, a.telemetry.Close()) // all that it tells of has ended
	if a.borrowed != nil {
		err = errors.Join(err, a.borrowed.Close())
	}
	if a.db != nil {
		err = errors.Join(err, a.db.Close())
	}
	return err
}
