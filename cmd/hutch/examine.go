package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/worker"
)

// maxModule is the largest file that is read as a module; it is the pre-check's
// own default.
const maxModule = 16 << 20

// workbench looks at single modules outside of any folder, as serve would: with
// the same workers, the same policy and the same checks.
type workbench struct {
	cfg  Config
	pool *worker.Pool
}

func openWorkbench(cfg Config, p program) (*workbench, error) {
	st, err := openState(cfg.State)
	if err != nil {
		return nil, err
	}
	pool, err := newPool(cfg, st, p.worker, nil, nil)
	if err != nil {
		return nil, err
	}
	return &workbench{cfg: cfg, pool: pool}, nil
}

// Close ends the workers.
func (w *workbench) Close() error { return w.pool.Close() }

// check is the pre-check.
func (w *workbench) check(body []byte) (*wasmbin.Module, error) {
	return wasmbin.Check(body, wasmbin.Budget{MemoryBytes: w.cfg.Limits.Call.MemoryBytes})
}

// describe asks the module itself, whatever its manifest says.
func (w *workbench) describe(ctx context.Context, name, digest string, checked *wasmbin.Module) ([]byte, error) {
	raw, err := w.pool.Describe(ctx, worker.Module{
		Name: name, Digest: digest, Limits: w.cfg.Limits.Call,
		Bytes: func() ([]byte, error) { return dialect.Code(checked) },
	})
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	return raw, nil
}

// mount admits body to a registry of its own, which grants nothing unless o does.
// What came of it is in the view; a module that is rejected is no error here. Close
// the registry.
func (w *workbench) mount(ctx context.Context, name string, body []byte, o registry.Options) (*registry.Registry, registry.Module, error) {
	digest := digestOf(body)
	o.Workers, o.Limits = w.pool, w.cfg.Limits.Call
	if o.Policy == nil {
		o.Policy = new(capability.Book)
	}
	o.Fetch = func(wanted string) ([]byte, error) {
		if wanted != digest {
			return nil, fmt.Errorf("no module sha256:%.12s", wanted)
		}
		return body, nil
	}
	r, err := registry.New(o)
	if err != nil {
		return nil, registry.Module{}, err
	}
	r.Apply(ctx, []tool.Candidate{{Name: name, Source: fromFile, Digest: digest, Size: int64(len(body))}})
	if err := ctx.Err(); err != nil {
		return nil, registry.Module{}, errors.Join(err, r.Close())
	}
	return r, r.Modules()[0], nil
}

// view is mount for who only looks.
func (w *workbench) view(ctx context.Context, name string, body []byte) (registry.Module, error) {
	r, m, err := w.mount(ctx, name, body, registry.Options{})
	if err != nil {
		return registry.Module{}, err
	}
	return m, r.Close()
}

// judged is view for who wants to know how a file of this name and these bytes stands
// by what was decided, wherever it lies, and what that was.
func (w *workbench) judged(ctx context.Context, p program, name string, body []byte) (registry.Module, *capability.Book, error) {
	book, err := w.book(ctx, p, body)
	if err != nil {
		return registry.Module{}, nil, err
	}
	r, m, err := w.mount(ctx, name, body, registry.Options{Policy: told{book, w.cfg.flags()}, Language: book.Language})
	if err != nil {
		return registry.Module{}, nil, err
	}
	return m, book, r.Close()
}

// book is what was decided, and which versions served, as tools in folders know it.
func (w *workbench) book(ctx context.Context, p program, body []byte) (*capability.Book, error) {
	set, err := p.openShipped()
	if err != nil {
		return nil, err
	}
	a := &App{cfg: w.cfg, log: slog.New(slog.DiscardHandler), fetch: func(string) ([]byte, error) { return body, nil }}
	if a.policy, err = openPolicy(w.cfg, a.log); err != nil {
		return nil, err
	}
	book, err := a.openBook(set)
	if err != nil {
		return nil, err
	}
	_, err = openPins(ctx, nil, w.cfg, book, set, a.log)
	return book, err
}

// rejection is the error for a module that cannot be used, or nil.
func rejection(m registry.Module) error {
	if m.Status != tool.Rejected {
		return nil
	}
	return fmt.Errorf("%s: %s", m.Name, m.Reason)
}

func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// fromFile is the source of a module that lies in no tool folder.
const fromFile = "file"

// readModule reads a module file, at most maxModule bytes of it. Whatever is no
// regular file is refused before it is opened: a FIFO would never answer.
func readModule(path string) ([]byte, error) { return readRegular(path, maxModule) }

// readRegular reads a regular file of at most that many bytes.
func readRegular(path string, most int64) (_ []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", filepath.Base(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(f, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%s: larger than %s", filepath.Base(path), formatSize(most))
	}
	return b.Bytes(), err
}
