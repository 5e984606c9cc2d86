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
		said, err := r.describe(ctx, m.module.Name, def.digest)
		if err != nil && !lastingFailure(err) {
			return err // says nothing about the manifest: ask again at the next call
		}
		if err == nil {
			err = def.compare(said)
		}
		if err == nil {
			def.confirmed.Store(true)
			r.remember(def)
			return nil
		}
		def.refuted = fmt.Errorf("%s does not match what the module says: %w", abi.ManifestSection, err)
		r.rememberRefusal(def.digest, def.refuted)
	}
	r.condemn(def.digest, def.refuted)
	return &callError{kind: tool.ErrRejected, text: fmt.Sprintf("module %s: %s", m.module.Name, def.refuted)}
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
