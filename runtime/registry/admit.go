package registry

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	definitions "github.com/hutch-run/hutch/protocol/definition"
	"github.com/hutch-run/hutch/protocol/portable"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/schema"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/worker"
)

const (
	// admissions is how many modules are read and described at once: each may
	// be 16 MiB in memory for a moment, and the parent stays small.
	admissions = 2
	// describeWall bounds describe, which has nothing to wait for: a module that
	// hangs in it holds up those behind it.
	describeWall = 5 * time.Second
	// publishEvery is how often verdicts are published while others are awaited.
	publishEvery = 250 * time.Millisecond
)

// recall finds the verdicts that need no work, and returns them with one candidate
// for each digest that does. Until it is said that these are wanted, a round that ends
// may forget what is known of them: hence known, for [Registry.retain].
func (r *Registry) recall(wanted []tool.Candidate) (unknown []tool.Candidate, known map[string]verdict) {
	known = map[string]verdict{}
	seen, prove := map[string]bool{}, r.replacing(wanted)
	for _, c := range slices.Concat(wanted, r.missingPins(wanted)) {
		if c.Err != nil || seen[c.Digest] {
			continue
		}
		seen[c.Digest] = true
		v, there := r.lasting(c.Digest)
		if there && v.unproven() && prove[c.Digest] {
			unknown = append(unknown, c)
			continue
		}
		if there {
			known[c.Digest] = v
			continue
		}
		if v, ok := r.cached(c.Digest); ok && (!v.unproven() || !prove[c.Digest]) {
			known[c.Digest] = v
			continue
		}
		if held, ok := r.quarantine.of(c.Digest); ok { // not even to be described
			known[c.Digest] = verdict{err: &quarantinedError{held.Reason}, passing: true}
			continue
		}
		unknown = append(unknown, c)
	}
	return unknown, known
}

// lasting returns the verdict about a digest, and drops one that may be another now.
func (r *Registry) lasting(digest string) (v verdict, there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, there = r.verdicts[digest]; there && v.passing {
		delete(r.verdicts, digest)
		return verdict{}, false
	}
	return v, there
}

// retain makes verdicts count where there are no later ones. mu is held.
func (r *Registry) retain(known map[string]verdict) {
	for digest, v := range known {
		if _, there := r.verdicts[digest]; !there {
			r.verdicts[digest] = v
		}
	}
}

func (r *Registry) decided(digest string, v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verdicts[digest] = v
}

// admit reads a module and what it says about itself. It recovers, since what
// it reads comes from strangers.
func (r *Registry) admit(ctx context.Context, c tool.Candidate) (v verdict) {
	defer func() {
		if p := recover(); p != nil {
			r.o.Logger.Error("admitting a module panicked", "module", c.Name, "panic", p, "stack", string(debug.Stack()))
			v = verdict{err: errors.New("hutch broke while reading it; its log says more"), passing: true}
		}
	}()
	if ctx.Err() != nil {
		return verdict{err: errors.New("was not read: hutch is stopping"), passing: true}
	}
	def, lasting, err := r.examine(ctx, c)
	if err == nil {
		r.remember(def)
		return verdict{def: def}
	}
	if lasting {
		r.rememberRefusal(c.Digest, err)
	}
	return verdict{err: err, passing: passing(err)}
}

// examine takes a module from its bytes to a definition. lasting says that the
// error is a property of the bytes.
func (r *Registry) examine(ctx context.Context, c tool.Candidate) (def *definition, lasting bool, err error) {
	raw, err := r.o.Fetch(c.Digest)
	if err != nil {
		return nil, false, &passingError{err}
	}
	m, err := wasmbin.Check(raw, r.budget())
	if err != nil {
		return nil, true, fmt.Errorf("pre-check: %w", err)
	}
	kind, err := dialect.Recognise(m)
	if err != nil {
		return nil, true, err
	}
	code, err := dialect.Code(m)
	if err != nil {
		return nil, true, err
	}
	def = &definition{
		digest: c.Digest, code: worker.CodeDigest(code), size: c.Size, kind: kind, imports: imports(m),
		requests: dialect.Requested(m), confirming: make(chan struct{}, 1),
	}
	said, from := m.Custom[abi.ManifestSection], abi.ManifestSection
	raw, m, code = nil, nil, nil // not needed while the module compiles
	if said == nil {
		from = "describe"
		if said, err = r.describe(ctx, c.Name, c.Digest); err != nil {
			return nil, lastingFailure(err), fmt.Errorf("describe: %w", err)
		}
		def.confirmed.Store(true)
	}
	if err := def.define(kind, said); err != nil {
		return nil, true, fmt.Errorf("%s: %w", from, err)
	}
	if err := def.compile(); err != nil {
		return nil, true, err
	}
	if def.confirmed.Load() || !r.mustProve(c.Digest) {
		return def, true, nil
	}
	lasting, err = r.prove(ctx, c.Name, def)
	return def, lasting, err
}

// describe asks a worker, once more if the first was lost under it.
func (r *Registry) describe(ctx context.Context, name, digest string) ([]byte, error) {
	m := r.workerModule(name, digest, r.o.Limits)
	m.Limits.Wall = min(m.Limits.Wall, describeWall)
	raw, err := r.o.Workers.Describe(ctx, m)
	if errors.Is(err, &abi.Failure{Class: abi.ClassWorkerLost}) {
		raw, err = r.o.Workers.Describe(ctx, m)
	}
	return raw, err
}

func (r *Registry) budget() wasmbin.Budget {
	return wasmbin.Budget{MemoryBytes: r.o.Limits.MemoryBytes}
}

// workerModule is how workers know a digest. The bytes are read again for each
// start, so that they do not stay in this process.
func (r *Registry) workerModule(name, digest string, limits abi.Limits) worker.Module {
	return worker.Module{Name: name, Digest: digest, Limits: limits, Bytes: func() ([]byte, error) {
		raw, err := r.o.Fetch(digest)
		if err != nil {
			return nil, err
		}
		m, err := wasmbin.Check(raw, r.budget())
		if err != nil {
			return nil, err
		}
		return dialect.Code(m)
	}}
}

// define turns what a module said into tools, or says what is wrong with it.
func (d *definition) define(kind dialect.Kind, said []byte) error {
	if n := len(said); n > dialect.MaxDescriptionBytes {
		return fmt.Errorf("%d bytes, at most %d", n, dialect.MaxDescriptionBytes)
	}
	desc, err := dialect.ParseDescription(kind, said)
	if err != nil {
		return err
	}
	switch n := len(desc.Tools); {
	case n == 0:
		return errors.New("no tools, at least 1")
	case n > dialect.MaxTools:
		return fmt.Errorf("%d tools, at most %d", n, dialect.MaxTools)
	}
	d.exported = desc
	if d.hash, err = definitions.Hash(desc); err != nil {
		return err
	}
	d.requests = union(desc.Requests, d.requests)
	names := map[string]string{}
	for _, own := range desc.Tools {
		t, err := bind(own)
		if err != nil {
			return err
		}
		if len(d.requests) == 0 {
			t.purify()
		}
		if other, taken := names[t.public.Name]; taken {
			return fmt.Errorf("tools %q and %q would both be listed as %q", other, own.Name, t.public.Name)
		}
		names[t.public.Name] = own.Name
		d.tools = append(d.tools, t)
	}
	return nil
}

// bind makes a tool presentable and keeps its own schemas for validation.
func bind(own tool.Spec) (*boundTool, error) {
	public, warnings, err := portable.Spec(own)
	if err != nil {
		return nil, err
	}
	t := &boundTool{own: own, public: public, warnings: warnings, input: schema.New(own.InputSchema)}
	if t.aliases, err = portable.AliasesOf(own); err != nil {
		return nil, err
	}
	if err := t.translate(); err != nil {
		return nil, err
	}
	if raw := rawOrNil(own.OutputSchema); raw != nil {
		t.output = schema.New(raw)
	}
	return t, nil
}

// translate makes the tool presentable in each of its languages.
func (t *boundTool) translate() error {
	all, err := portable.Translated(t.own)
	if err != nil {
		return err
	}
	for language, spec := range all {
		public, _, err := portable.Spec(spec) // warned of already
		if err != nil {
			return err
		}
		if t.translated == nil {
			t.translated = map[string]tool.Spec{}
		}
		t.translated[language] = public
	}
	return nil
}

// purify says in all languages that the tool can reach nothing.
func (t *boundTool) purify() {
	t.public.Annotations = t.public.Annotations.Pure()
	for language, public := range t.translated {
		public.Annotations = public.Annotations.Pure()
		t.translated[language] = public
	}
}

// compile finds out whether the schemas compile. The outcome is thrown away:
// most tools are never called, and the next call compiles again.
func (d *definition) compile() error {
	for _, t := range d.tools {
		for where, s := range map[string]*schema.Schema{"inputSchema": t.input, "outputSchema": t.output} {
			if s == nil {
				continue
			}
			warnings, err := s.Compile()
			if err != nil {
				return fmt.Errorf("tool %q: %s: %w", t.own.Name, where, err)
			}
			t.warnings = append(t.warnings, warnings...)
		}
		slices.Sort(t.warnings)
	}
	return nil
}

// union keeps what is asked in words, and adds what is only linked.
func union(said, linked tool.Requests) tool.Requests {
	if len(said) == 0 && len(linked) == 0 {
		return nil
	}
	all := tool.Requests{}
	for name, what := range linked {
		all[name] = what
	}
	for name, what := range said {
		all[name] = what
	}
	return all
}

func imports(m *wasmbin.Module) []string {
	var names []string
	for _, i := range m.Imports {
		names = append(names, i.Module+" "+i.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A passingError may be gone at the next attempt.
type passingError struct{ error }

func (e *passingError) Unwrap() error { return e.error }

// passing reports whether it is worth trying again at the next Apply.
func passing(err error) bool {
	var p *passingError
	var f *abi.Failure
	switch {
	case errors.As(err, &p):
		return true
	case errors.As(err, &f):
		return !lastingFailure(err) && f.Class != abi.ClassTimeout
	}
	return false
}

// lastingFailure reports whether a failure says something about the bytes. A
// timeout does not: the machine may have been busy.
func lastingFailure(err error) bool {
	var f *abi.Failure
	if !errors.As(err, &f) {
		return false
	}
	return slices.Contains([]abi.Class{abi.ClassModule, abi.ClassGuest, abi.ClassTrap, abi.ClassLimit}, f.Class)
}
