package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/sandbox"
)

// Arg is the first argument that makes hutch be a worker: its main function
// calls [Main] then and does nothing else.
const Arg = "__worker"

// Main is a worker's whole life: it speaks to the parent on standard input and
// output until the parent closes its end. It returns the exit code: 0, or 1 if
// the parent did not keep to the protocol, which standard error explains.
func Main() int {
	// The parent knows when; it logs this only if the process ends badly.
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	if err := run(loadDialect(log), log); err != nil {
		log.Error("worker ends", "err", err)
		return 1
	}
	return 0
}

func run(load loader, log *slog.Logger) error {
	// A worker tells nobody the time, and cannot open a file of time zones later.
	time.Local = time.UTC
	if err := closeInherited(); err != nil {
		return err
	}
	in, err := standardPipe(os.Stdin)
	if err != nil {
		return err
	}
	out, err := standardPipe(os.Stdout)
	if err != nil {
		return err
	}
	return serve(in, out, load, log)
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// loadDialect confines this process before it looks at the module, and once more
// before any of the module's code can run.
func loadDialect(log *slog.Logger) loader {
	return func(ctx context.Context, wasm []byte, head loadHead) (guest, loadReport, error) {
		if err := confine(head); err != nil {
			return nil, loadReport{}, err
		}
		pages := openPages(head, log)
		jail := enter(head, pages)
		if head.Probe || head.RequireJail && len(jail.missing(firstWalls)) > 0 {
			jail.seal(pages) // the report is what is wanted, or all there will be
			return nil, loadReport{Jail: jail}, nil
		}
		g, err := dialect.Load(ctx, wasm, dialect.Options{
			CacheDir: head.CacheDir, CacheReadOnly: head.CacheReadOnly, Limits: head.Limits,
			Pages: pages, Calls: head.Calls, Logger: log,
		})
		if err != nil {
			return nil, loadReport{}, err
		}
		jail.seal(pages)
		if head.RequireJail && jail.Err() != nil {
			return nil, loadReport{Jail: jail}, nil
		}
		return g, loadReport{Jail: jail, CacheStale: g.CacheStale()}, nil
	}
}

// openPages opens, before the door is locked, what tells the pages that a call changed;
// nil where that cannot be told.
func openPages(head loadHead, log *slog.Logger) *sandbox.Pages {
	if head.Probe {
		return nil
	}
	pages, err := sandbox.OpenPages(head.Limits.WithDefaults().MemoryBytes)
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			log.Warn("all memory is compared after each call", "err", err)
		}
		return nil
	}
	return pages
}

// tune sets up the Go runtime for guests. Machine code of a guest cannot be
// preempted, so each running call holds a processor of the scheduler until it comes
// back for fuel, which is every few milliseconds; two more keep the pipe alive. A
// collection waits for all of them to come back, and everybody for the collection, so
// there are few: garbage may grow to four times what is alive before there is one (the
// least is 16 MiB), and only close to the memory limit does the collector work harder.
func tune(head loadHead) {
	runtime.GOMAXPROCS(head.Calls + 2)
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(head.MemoryBytes / 4 * 3)
}
