//go:build !linux

package main

import (
	"io"
	"log/slog"
)

// slimWorker returns nil: only Linux starts programs from memory.
func slimWorker(*slog.Logger) func() (io.ReadCloser, error) { return nil }
