package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"runtime"
	"strings"
)

// slim holds hutch-worker and what it was built as, if make built one before
// this program.
//
//go:embed all:slim
var slim embed.FS

// slimWorker returns what opens the embedded worker; nil if there is none that
// belongs to this program, which then starts itself as a worker.
func slimWorker(log *slog.Logger) func() (io.ReadCloser, error) {
	return slimWorkerIn(slim, fmt.Sprintf("%s %s %s", version, runtime.GOOS, runtime.GOARCH), log)
}

func slimWorkerIn(folder fs.FS, wanted string, log *slog.Logger) func() (io.ReadCloser, error) {
	found, err := fs.ReadFile(folder, "slim/built")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if is := strings.TrimSpace(string(found)); err != nil || is != wanted {
		log.Warn("embedded worker not used: it was built as something else; run make", "worker", is, "hutch", wanted, "err", err)
		return nil
	}
	return func() (io.ReadCloser, error) { return folder.Open("slim/hutch-worker") }
}
