package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/registry"
)

// answersFolder lies beside example calls and has a recording for each that needs
// one, with the name of its file.
const answersFolder = "answers"

// stage is what example calls are made on: one serves what a file has kept, the
// other what the world answers, and keeps it.
type stage interface {
	// options are those of the registry that serves the module.
	options() registry.Options
	// open is told what the registry made of the module.
	open(context.Context, registry.Module) error
	// perform makes one call, prepared, and adds what it finds to its report. The
	// recording of the call is, or will be, the file at path.
	perform(ctx context.Context, path string, e example, tools *registry.Registry) (callReport, error)
	Close() error
}

// stageFor returns the stage for the calls of a module.
func (w *workbench) stageFor(ctx context.Context, p program, src *source, record bool) (_ stage, err error) {
	if !record {
		return newPlayer(src.name, slog.New(slog.DiscardHandler)), nil
	}
	if src.target != nil { // a policy is about the bytes that a build writes
		if src.body, err = w.stampSource(ctx, *src); err != nil {
			return nil, err
		}
	}
	t, err := openTrial(ctx, w.cfg, p, src.name, src.body, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return &recorder{trial: t}, nil
}

// player makes calls without a network: they get what was recorded.
type player struct {
	*playback
	module string
	// refuses: what no recording answers is refused, values too.
	refuses bool
	// scratch is nil for a module that gets no storage.
	scratch   *scratch
	requested capability.Grant
}

func newPlayer(module string, log *slog.Logger) *player {
	return &player{playback: newPlayback(log), module: module}
}

func (p *player) options() registry.Options { return p.playback.options(nil) }

func (p *player) open(ctx context.Context, m registry.Module) (err error) {
	if p.requested, err = capability.ParseRequests(m.Requests); err != nil {
		return fmt.Errorf("%s: %w", p.module, err)
	}
	if p.requested.KV != nil && !p.refuses {
		p.scratch, err = openScratch(ctx, p.module)
	}
	return err
}

// prepare has the next call answered from a recording.
func (p *player) prepare(ctx context.Context, r recording) error {
	n := gate.Observation{Recording: r.Exchanges, Requested: p.requested, Config: r.Config}
	if !p.refuses {
		n.Refusal = "no recording has an answer; hutch test --" + flagRecord + " makes one"
	}
	if p.scratch != nil {
		if err := p.scratch.set(ctx, r.Values); err != nil {
			return err
		}
		n.Values = p.scratch.host(p.requested.KV.Max)
	}
	p.observer = gate.NewObserver(n)
	return nil
}

func (p *player) perform(ctx context.Context, path string, e example, tools *registry.Registry) (callReport, error) {
	r, err := readRecordingIfThere(path)
	if err != nil {
		return callReport{}, err
	}
	if err := p.prepare(ctx, r); err != nil {
		return callReport{}, fmt.Errorf("%s: %w", quoted(path), err)
	}
	report := e.run(ctx, tools)
	for _, a := range p.observer.Attempts() {
		if !a.Answered && a.Op != abi.OpConfig {
			report.fail("no recording has an answer: %s %s", a.Op, a.About)
			report.unanswered = true
		}
	}
	return report, nil
}

// Close removes the storage.
func (p *player) Close() error {
	if p.scratch == nil {
		return nil
	}
	return p.scratch.Close()
}

// recorder makes calls as the policy in force lets them, and keeps what they were
// answered.
type recorder struct {
	*trial
	values bool // the module asks for a storage
}

func (r *recorder) open(_ context.Context, m registry.Module) error {
	requested, err := capability.ParseRequests(m.Requests)
	r.values = requested.KV != nil
	return err
}

// perform starts a call with the values that its recording has, if there is one, and
// with those that the call before left, if not.
func (r *recorder) perform(ctx context.Context, path string, e example, tools *registry.Registry) (callReport, error) {
	old, err := readRecordingIfThere(path)
	if err == nil && old.Values != nil {
		err = r.scratch.set(ctx, old.Values)
	}
	var before []abi.KVSet
	if err == nil && r.values {
		before, err = r.scratch.contents(ctx)
	}
	if err != nil {
		return callReport{}, fmt.Errorf("%s: %w", quoted(path), err)
	}
	r.keep = &tape{}
	report := e.run(ctx, tools)
	next, refused := r.keep.recording()
	for _, why := range refused {
		report.fail("not recorded: %s", why)
	}
	if len(refused) > 0 || ctx.Err() != nil {
		return report, ctx.Err()
	}
	next.Values = before
	report.Recorded = len(next.Exchanges)
	return report, r.save(path, next)
}

// save writes a recording, and removes one that would say nothing.
func (r *recorder) save(path string, next recording) error {
	if !next.empty() {
		return next.write(path, r.vault.Redactor())
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readRecordingIfThere is readRecording for a file that need not be there.
func readRecordingIfThere(path string) (recording, error) {
	r, err := readRecording(path)
	if errors.Is(err, fs.ErrNotExist) {
		return recording{}, nil
	}
	return r, err
}

// empty reports whether a call with r meets what one without a recording does.
func (r recording) empty() bool { return len(r.Config)+len(r.Exchanges) == 0 && r.Values == nil }

// fail adds to what is wrong with the answer.
func (r *callReport) fail(format string, args ...any) {
	r.Passed = false
	r.Diff = append(r.Diff, abi.OneLine(fmt.Sprintf(format, args...), 600))
}

// answersOf is where the recording of an example lies.
func answersOf(dir string, e example) string { return filepath.Join(dir, answersFolder, e.file) }
