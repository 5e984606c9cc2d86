package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/definition"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
)

// dossier is what there is to know for who decides about a module.
type dossier struct {
	module registry.Module
	// now is what its file says about itself, before what the version said that was
	// decided about or served last; its digest is empty if there was none.
	now, before moduleVersion
	// older: now was replaced by before once, or says that it comes before it.
	older bool
	// entry is what was decided, and mark identifies the operator's part of it.
	entry capability.Entry
	mark  string
	// shippedGrant: as long as the operator decides nothing, it is granted what
	// came with the program.
	shippedGrant bool
}

// moduleVersion is one version of a module.
type moduleVersion struct {
	capability.Binding
	said  tool.Description
	asks  capability.Grant
	known bool // said and asks are
}

// String names the version by its own number, if it has one, and its digest.
func (v moduleVersion) String() string {
	return strings.TrimSpace(oneLine(v.said.Version) + fmt.Sprintf(" sha256:%.12s", v.Digest))
}

// aboutModule runs f with what there is to know about the module that is the
// command's first argument.
func aboutModule(c *cli.Context, p program, cfg Config, f func(context.Context, *App, *voice, *dossier) error) error {
	return cfg.withTools(c, p, func(ctx context.Context, a *App, say *voice) error {
		name := c.Args().First()
		if err := a.await(ctx, say, func() bool { return a.loaded(name) }); err != nil {
			return err
		}
		d, err := a.lookUp(name)
		if err != nil {
			return err
		}
		if d.older, err = a.goesBack(ctx, d); err != nil {
			return err
		}
		return f(ctx, a, say, d)
	})
}

// goesBack reports whether the file is an older version than the one before.
func (a *App) goesBack(ctx context.Context, d *dossier) (bool, error) {
	if !d.changed() {
		return false, nil
	}
	now, err := a.rank(ctx, d.module.Name, d.now.Digest)
	if err != nil {
		return false, err
	}
	before, err := a.rank(ctx, d.module.Name, d.before.Digest)
	changes := capability.Pin{Digest: d.before.Digest, Version: d.before.said.Version}.Changes(capability.Pin{Digest: d.now.Digest, Version: d.now.said.Version})
	calls := slices.ContainsFunc(changes, func(c capability.Change) bool { return c.Kind == capability.Downgrade })
	return calls || 0 < now && now < before, err
}

// loaded reports whether what there is to know about a module is known.
func (a *App) loaded(name string) bool {
	m, ok := findModule(a.modules.Modules(), name)
	if !ok || m.Name != moduleName(name) {
		return false
	}
	_, err := a.modules.Described(m.Digest)
	return err == nil
}

// moduleName is the file name that a module's name or path is meant for.
func moduleName(name string) string {
	name = filepath.Base(name)
	if !strings.HasSuffix(name, moduleSuffix) {
		name += moduleSuffix
	}
	return name
}

// findModule returns the module of that name, with or without its ending, or the one
// that has a tool of that name. Of two files of one name it is the one that serves.
func findModule(modules []registry.Module, name string) (found registry.Module, ok bool) {
	for _, same := range []func(m registry.Module) bool{
		func(m registry.Module) bool { return m.Name == moduleName(name) && m.Status != tool.Rejected },
		func(m registry.Module) bool { return m.Name == moduleName(name) },
		func(m registry.Module) bool {
			return slices.ContainsFunc(m.Tools, func(t registry.Tool) bool { return t.Published.Name == name })
		},
	} {
		if i := slices.IndexFunc(modules, same); i >= 0 {
			return modules[i], true
		}
	}
	return found, false
}

// lookUp gathers what there is to know about a module.
func (a *App) lookUp(name string) (*dossier, error) {
	m, ok := findModule(a.modules.Modules(), name)
	if !ok {
		return nil, a.noModule(name)
	}
	if err := sameFile(name, m); err != nil {
		return nil, err
	}
	if m.Digest == "" || m.Status == tool.Rejected {
		return nil, fmt.Errorf("%s cannot be used, whatever is decided: %s", quoted(m.Name), m.Reason)
	}
	d := &dossier{module: m}
	var err error
	if d.now, err = a.versionOf(m.Digest); err != nil {
		return nil, fmt.Errorf("%s: %w", quoted(m.Name), err)
	}
	own, _ := a.book.Policy().Entry(m.Name)
	if d.mark, err = markOf(own); err != nil {
		return nil, err
	}
	d.entry = a.book.Entry(tool.Module{Name: m.Name, Digest: m.Digest, Shipped: m.Shipped})
	d.shippedGrant = d.entry.Decided && !own.Decided
	d.before = a.versionBefore(m, own)
	return d, nil
}

func (a *App) versionOf(digest string) (v moduleVersion, err error) {
	v.Digest = digest
	if v.said, err = a.modules.Described(digest); err != nil {
		return v, err
	}
	requests, err := a.modules.Requested(digest)
	if err == nil {
		v.asks, err = capability.ParseRequests(requests)
	}
	if err != nil {
		return v, err
	}
	v.known = true
	v.Definitions, err = definition.Hash(v.said)
	return v, err
}

// versionBefore is what was decided about, or else what served last.
func (a *App) versionBefore(m registry.Module, own capability.Entry) moduleVersion {
	digest := own.Digest
	if digest == "" {
		digest = a.pins.digest(tool.Candidate{Name: m.Name, Shipped: m.Shipped})
	}
	if digest == "" {
		return moduleVersion{}
	}
	v, err := a.versionOf(digest)
	if err != nil { // it served on another machine, or the cache was emptied
		v.Digest, v.known = digest, false
	}
	if own.Digest == digest && own.Definitions != "" {
		v.Definitions = own.Definitions
	}
	return v
}

// changed reports whether the file is another version than what was decided about.
func (d *dossier) changed() bool {
	return d.before.Digest != "" &&
		(d.before.Digest != d.now.Digest || d.before.Definitions != "" && d.before.Definitions != d.now.Definitions)
}

// saysChanged is how what the module says about its tools differs from before.
func (d *dossier) saysChanged() []definition.Change {
	if !d.changed() || !d.before.known {
		return nil
	}
	before, now := d.before.said, d.now.said
	before.Requests, now.Requests = nil, nil // they are compared as what they mean
	return definition.Diff(before, now)
}

// sameButCode reports whether versions differ in nothing that can be told but their
// code.
func (d *dossier) sameButCode() bool {
	return d.changed() && d.before.known && len(d.saysChanged()) == 0 && len(d.requested()) == 0
}

// requested is how what it asks for differs from before.
func (d *dossier) requested() []string {
	if !d.changed() || !d.before.known {
		return nil
	}
	return capability.DiffGrants(d.before.asks, d.now.asks)
}

// sameFile refuses a path to something else than the module of that name.
func sameFile(name string, m registry.Module) error {
	if !strings.ContainsAny(name, `/\`) {
		return nil
	}
	body, err := readModule(name)
	if err != nil {
		return err
	}
	if digestOf(body) != m.Digest {
		return hinted(fmt.Errorf("%s is not the %s in %s", quoted(name), quoted(m.Name), m.Source), "put it into the tool folder first, or name the module: %s", shellWord(m.Name))
	}
	return nil
}

func (a *App) noModule(name string) error {
	err := fmt.Errorf("no module %s: %s", quoted(name), a.cfg.lookedIn())
	if like := a.moduleLike(name); like != "" {
		return hinted(err, "did you mean %s?", shellWord(like))
	}
	if _, there := os.Stat(name); there == nil && strings.HasSuffix(name, moduleSuffix) {
		return hinted(err, "put it into the tool folder first")
	}
	return hinted(err, "hutch tools list%s", a.cfg.flags())
}

// moduleLike returns the file name of the module that name may have been meant for.
func (a *App) moduleLike(name string) string {
	var stems []string
	for _, m := range a.modules.Modules() {
		stems = append(stems, strings.TrimSuffix(m.Name, moduleSuffix))
	}
	if like := similar(stems, strings.TrimSuffix(moduleName(name), moduleSuffix)); like != "" {
		return like + moduleSuffix
	}
	return ""
}

// toolLike returns the tool that name may have been meant for.
func (a *App) toolLike(name string) string {
	var names []string
	for _, m := range a.modules.Modules() {
		for _, t := range m.Tools {
			names = append(names, t.Published.Name)
		}
	}
	return similar(names, name)
}
