package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/portable"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/schema"
	"github.com/hutch-run/hutch/runtime/worker"
)

// Workers runs modules; a *worker.Pool does. Errors are *abi.Failure.
type Workers interface {
	Describe(context.Context, worker.Module) ([]byte, error)
	Call(context.Context, worker.Module, abi.Invocation) ([]byte, abi.Usage, error)
	// Retire returns at once; running calls of the digest are finished.
	Retire(digest string)
}

// Policy decides whether a caller may see and call a tool. It is asked the
// same question for both, and must answer quickly and from any goroutine. The
// zero Caller asks how things stand with nobody in particular.
type Policy interface {
	Decide(tool.Caller, tool.Module, tool.Spec) tool.Decision
}

// Options configure a [Registry]. Workers, Policy and Fetch are required.
type Options struct {
	Workers Workers
	Policy  Policy
	// Fetch returns a module's bytes, verified against the digest.
	Fetch func(digest string) ([]byte, error)
	// CacheDir keeps what modules said about themselves, one file a digest, so
	// that a known one is neither read nor compiled at the next start. It is
	// created. Default: nothing is kept.
	CacheDir string
	// Build names the program, since another one may read modules differently:
	// what it did not write itself is worked out anew.
	Build string
	// QuarantineDir keeps which modules may not run any more. It is created.
	// Default: this process alone remembers.
	QuarantineDir string
	// Deaths within DeathWindow are how often a module may take its worker down
	// before it is quarantined; see [Registry.Died]. Default 5 within 10 minutes.
	Deaths      int
	DeathWindow time.Duration
	// Limits bound each call; zero fields mean their defaults.
	Limits abi.Limits
	// Grants gives each call what its module may use, and its module limits of
	// its own. Default: nothing, and no log.
	Grants Grants
	// Prefix returns what stands before the names of a module's tools: a few letters,
	// or nothing. It must answer quickly and from any goroutine. Default: nothing.
	Prefix func(tool.Module) string
	// Language returns the language in which a module's tools are described, such as ru;
	// empty is what their definitions are written in. It must answer quickly and from any
	// goroutine. Default: empty.
	Language func(tool.Module) string
	// Redactor takes secrets out of what tools answer and report. Default: nothing
	// is taken out.
	Redactor Redactor
	// Pinned returns the digest of the version of a file that was accepted, empty
	// if there is none. It serves in place of one that may not, as long as Fetch
	// has its bytes. It must answer quickly and from any goroutine.
	Pinned func(tool.Candidate) string
	// Logger gets warnings. Default: nothing is logged.
	Logger *slog.Logger
}

// Registry holds the tools. Its methods may be called from any goroutine.
type Registry struct {
	o          Options
	cache      descriptions
	hot        schema.Hot
	subs       subscribers
	quarantine *quarantine
	current    atomic.Pointer[snapshot]
	closed     atomic.Bool

	// applying keeps sets in order while what is known of them is looked up. It
	// is taken before mu, and never held while a module is read.
	applying sync.Mutex

	life    context.Context // ends with Close, and with it every admission
	stop    context.CancelFunc
	running sync.WaitGroup // admissions

	mu        sync.Mutex
	wanted    []tool.Candidate
	verdicts  map[string]verdict // by digest: of everything wanted or serving
	round     *round             // nil: nothing is waited for
	queue     []tool.Candidate   // to be admitted, one a digest
	admitting map[string]bool    // digests, whether still wanted or not
	described []string           // digests admitted since a round settled
	stale     bool               // there are verdicts that are not published
	soon      *time.Timer        // until they are; nil: not set

	usesMu sync.Mutex
	uses   map[string]int // by digest: files and running calls
}

// A verdict is what came of admitting a digest. A passing one is no property
// of the bytes: it is worked out again when it is needed again.
type verdict struct {
	def     *definition
	err     error // why there is no def
	passing bool
}

// New returns a registry without tools.
func New(o Options) (*Registry, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Limits = o.Limits.WithDefaults()
	if o.Grants == nil {
		o.Grants = noGrants{}
	}
	if o.Prefix == nil {
		o.Prefix = func(tool.Module) string { return "" }
	}
	if o.Language == nil {
		o.Language = func(tool.Module) string { return "" }
	}
	if o.Redactor == nil {
		o.Redactor = noRedactor{}
	}
	if o.Pinned == nil {
		o.Pinned = func(tool.Candidate) string { return "" }
	}
	o.Deaths, o.DeathWindow = cmp.Or(o.Deaths, defaultDeaths), cmp.Or(o.DeathWindow, defaultDeathWindow)
	q, err := newQuarantine(o)
	if err != nil {
		return nil, fmt.Errorf("quarantine: %w", err)
	}
	o.Policy = guarded{o.Policy, q}
	if o.CacheDir != "" {
		if err := os.MkdirAll(o.CacheDir, 0o700); err != nil {
			return nil, err
		}
	}
	r := &Registry{
		o:          o,
		cache:      descriptions{dir: o.CacheDir, maker: o.Build},
		quarantine: q,
		verdicts:   map[string]verdict{},
		admitting:  map[string]bool{},
		uses:       map[string]int{},
	}
	r.life, r.stop = context.WithCancel(context.Background())
	r.subs.logger = o.Logger
	r.current.Store(build(&snapshot{}, nil, nil, &r.o))
	return r, nil
}

// Apply makes candidates the whole set of modules: new ones are admitted,
// missing ones go, and a file whose new version cannot be used keeps the one
// that serves. Shipped modules come first; else the order of candidates
// decides who gets a name that two want, unless one of them has it already.
//
// What is known is published before anything is waited for, and what comes to be
// known while it lasts, so that it can be used. Apply returns when all is known,
// or when a newer set took the place of this one. When ctx ends, modules not yet
// admitted are reported as such, and the next Apply tries them again. After Close
// it does nothing.
func (r *Registry) Apply(ctx context.Context, candidates []tool.Candidate) {
	<-r.Offer(ctx, candidates)
}

// Offer does what Apply does and does not wait: what is known is published when
// it returns, and over is closed when Apply would have returned.
func (r *Registry) Offer(ctx context.Context, candidates []tool.Candidate) (over <-chan struct{}) {
	r.applying.Lock()
	defer r.applying.Unlock()
	return r.begin(ctx, shippedFirst(candidates))
}

// Retry tries again what failed for a reason that says nothing about the module,
// such as a worker that was lost; without any it does nothing.
func (r *Registry) Retry(ctx context.Context) {
	if over := r.beginPassing(ctx); over != nil {
		<-over
	}
}

func (r *Registry) beginPassing(ctx context.Context) (over <-chan struct{}) {
	r.applying.Lock()
	defer r.applying.Unlock()
	if wanted, again := r.passing(); again {
		return r.begin(ctx, wanted)
	}
	return nil
}

// passing reports whether a verdict may be another next time, and what is wanted.
func (r *Registry) passing() (wanted []tool.Candidate, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.verdicts {
		again = again || v.passing
	}
	return r.wanted, again
}

func shippedFirst(candidates []tool.Candidate) []tool.Candidate {
	c := slices.Clone(candidates)
	slices.SortStableFunc(c, func(a, b tool.Candidate) int {
		switch {
		case a.Shipped == b.Shipped:
			return 0
		case a.Shipped:
			return -1
		}
		return 1
	})
	return c
}

func (r *Registry) lastWanted() []tool.Candidate {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wanted
}

// publishLocked builds the next snapshot and swaps it in. Who had which name is
// read from base: what the round started from. mu is held.
func (r *Registry) publishLocked(base *snapshot) {
	r.stale = false
	next := build(base, r.wanted, r.verdicts, &r.o)
	for _, e := range next.entries {
		r.hold(e.mount)
	}
	old := r.current.Swap(next)
	for _, e := range old.entries {
		if e.mount != nil {
			r.release(e.mount.def.digest)
		}
	}
	r.renew(old, next)
	r.logChanges(old, next)
	if old.visible != next.visible {
		r.subs.tell()
	}
}

// logChanges says once what became of a file, if it cannot be used as it is.
func (r *Registry) logChanges(old, next *snapshot) {
	for _, e := range next.entries {
		was := old.byKey[keyOf(e.candidate)]
		if e.reason == "" || strings.HasSuffix(e.reason, reasonLoading) || was != nil && was.reason == e.reason {
			continue
		}
		r.o.Logger.Warn(toldAs(e), "module", e.candidate.Name, "folder", e.candidate.Source,
			"status", string(e.status), "reason", e.reason)
	}
}

// toldAs is the message about a file that cannot be used as it is.
func toldAs(e *entry) string {
	if e.mount != nil && e.mount.def.digest != e.candidate.Digest {
		return "module not replaced"
	}
	return "module " + string(e.status)
}

// condemn takes a digest out of service: it turned out to be unusable.
func (r *Registry) condemn(digest string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return
	}
	r.verdicts[digest] = verdict{err: why}
	r.publishLocked(r.current.Load())
}

// forget drops verdicts that nothing refers to any more. mu is held.
func (r *Registry) forget() {
	used := map[string]bool{}
	for _, c := range r.wanted {
		used[c.Digest], used[r.o.Pinned(c)] = true, true
	}
	for _, e := range r.current.Load().entries {
		if e.mount != nil {
			used[e.mount.def.digest] = true
		}
	}
	for digest, v := range r.verdicts {
		if !used[digest] {
			delete(r.verdicts, digest)
			if v.passing {
				r.retireUnused(digest)
			}
		}
	}
}

// retireUncallable ends what was started to describe modules that are of no use
// now: refused ones, and those that lost a name to another. What failed in passing
// keeps its place among the workers, and with it the pause it
// has to make before the next attempt. mu is held.
func (r *Registry) retireUncallable() {
	for _, digest := range r.described {
		if !r.verdicts[digest].passing {
			r.retireUnused(digest)
		}
	}
	r.described = nil
}

// retireUnused ends the worker of a digest that no version uses.
func (r *Registry) retireUnused(digest string) {
	r.usesMu.Lock()
	defer r.usesMu.Unlock()
	if r.uses[digest] == 0 {
		r.o.Workers.Retire(digest)
	}
}

func (r *Registry) hold(m *mount) {
	if m == nil {
		return
	}
	r.usesMu.Lock()
	defer r.usesMu.Unlock()
	r.uses[m.def.digest]++
}

// holdLive counts one more use of a digest that is in use, and reports whether
// it was.
func (r *Registry) holdLive(digest string) bool {
	r.usesMu.Lock()
	defer r.usesMu.Unlock()
	if r.uses[digest] == 0 {
		return false
	}
	r.uses[digest]++
	return true
}

func (r *Registry) release(digest string) {
	r.usesMu.Lock()
	defer r.usesMu.Unlock()
	if r.uses[digest]--; r.uses[digest] == 0 {
		delete(r.uses, digest)
		// Under the lock: a file that brings the digest back comes after this.
		r.o.Workers.Retire(digest)
	}
}

// List returns the published definitions of the tools that c may call, sorted
// by name. They are shared and must not be changed.
func (r *Registry) List(c tool.Caller) []tool.Spec {
	var specs []tool.Spec
	for _, l := range r.current.Load().tools {
		if r.decide(c, l.mount, l.bound).Status == tool.Ready {
			specs = append(specs, l.bound.public)
		}
	}
	return specs
}

// decide is the one place where a caller's right to a tool is asked for.
func (r *Registry) decide(c tool.Caller, m *mount, b *boundTool) tool.Decision {
	return r.o.Policy.Decide(c, m.module, b.public)
}

// Subscribe calls told after each change of what List shows, from a goroutine
// of its own, one call after the other; changes in quick succession may be told
// once. Nothing is told when nothing visible changed. stop ends it; a call that
// has begun is not waited for.
func (r *Registry) Subscribe(told func()) (stop func()) { return r.subs.add(told) }

// Close ends what Subscribe and Apply started and refuses calls from now on.
// Running calls go on. The second and later calls do nothing.
func (r *Registry) Close() error {
	r.closed.Store(true)
	r.end()
	r.subs.close()
	return nil
}

// A mount is one version of one file, ready to serve.
type mount struct {
	module tool.Module
	def    *definition
	tools  []*boundTool // def's, under the names they are published by
	limits abi.Limits   // of one call
}

// A definition is what one digest offers. It is shared by all files with these
// bytes and immutable but for the confirmation.
type definition struct {
	digest   string
	code     string // its worker.CodeDigest
	size     int64
	kind     dialect.Kind
	exported tool.Description
	hash     string        // of exported
	requests tool.Requests // exported ones, and what the imports ask for
	imports  []string
	tools    []*boundTool

	// confirmed: the module itself said this, not only its manifest.
	confirmed  atomic.Bool
	confirming chan struct{} // one place: who holds it may compare
	refuted    error         // by who held confirming: it says something else
}

// A boundTool is one tool of a definition.
type boundTool struct {
	own, public tool.Spec            // public without a prefix in a definition, with it in a mount
	translated  map[string]tool.Spec // public in other languages
	warnings    []string
	input       *schema.Schema
	aliases     *portable.Aliases // nil: none
	output      *schema.Schema    // nil: no claim about the structured result
}

func rawOrNil(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}
