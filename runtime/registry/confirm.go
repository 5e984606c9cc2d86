package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/portable"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect"
)

// confirm compares, before the first call, what the module itself says with
// the manifest it was listed by. A module that says something else is taken
// out of service for good.
func (r *Registry) confirm(ctx context.Context, m *mount) error {
	def := m.def
	if def.confirmed.Load() {
		return nil
	}
	select {
	case def.confirming <- struct{}{}:
		defer func() { <-def.confirming }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if def.confirmed.Load() {
		return nil
	}
	if def.refuted == nil {
		lasting, err := r.prove(ctx, m.module.Name, def)
		switch {
		case err == nil:
			r.remember(def)
			return nil
		case !lasting:
			return err // ask again at the next call
		}
		def.refuted = err
		r.rememberRefusal(def.digest, def.refuted)
	}
	r.condemn(def.digest, def.refuted)
	return &callError{kind: tool.ErrRejected, text: fmt.Sprintf("module %s: %s", m.module.Name, def.refuted)}
}

// prove asks the module itself. An error that is not lasting says nothing about the
// manifest.
func (r *Registry) prove(ctx context.Context, name string, def *definition) (lasting bool, err error) {
	said, err := r.describe(ctx, name, def.digest)
	if err != nil && !lastingFailure(err) {
		return false, err
	}
	if err == nil {
		err = def.compare(said)
	}
	if err != nil {
		return true, fmt.Errorf("%s does not match what the module says: %w", abi.ManifestSection, err)
	}
	def.confirmed.Store(true)
	return false, nil
}

// unproven reports whether there is nothing but a manifest yet.
func (v verdict) unproven() bool { return v.def != nil && !v.def.confirmed.Load() }

// replaces reports whether c would take the place of a version that serves or was
// accepted. One that does is asked itself before: a manifest that lies must not cost
// the version that works.
func replaces(c tool.Candidate, was *entry, pinned string) bool {
	return was != nil && was.mount != nil && was.mount.def.digest != c.Digest || pinned != "" && pinned != c.Digest
}

// replacing returns the digests of the candidates that replace something.
func (r *Registry) replacing(wanted []tool.Candidate) map[string]bool {
	now, all := r.current.Load(), map[string]bool{}
	for _, c := range wanted {
		if replaces(c, now.byKey[keyOf(c)], r.o.Pinned(c)) {
			all[c.Digest] = true
		}
	}
	return all
}

// mustProve reports whether a manifest is not enough for the round that lasts.
func (r *Registry) mustProve(digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.round != nil && r.round.prove[digest]
}

// compare returns how what was said differs from the definition.
func (d *definition) compare(said []byte) error {
	desc, err := dialect.ParseDescription(d.kind, said)
	if err != nil {
		return fmt.Errorf("describe: %w", err)
	}
	if desc.Version != d.exported.Version {
		return fmt.Errorf("version %.40q, describe says %.40q", d.exported.Version, desc.Version)
	}
	listed, err := portable.DefinitionHash(d.exported)
	if err != nil {
		return err
	}
	told, err := portable.DefinitionHash(desc)
	if err != nil {
		return err
	}
	if listed != told {
		return errors.New("tools or requests are not the same in describe")
	}
	return nil
}
