//go:build !linux

package worker

import (
	"errors"
	"io"
	"os"
	"runtime"
)

func programInMemory(func() (io.ReadCloser, error)) (*os.File, error) {
	return nil, errors.New("programs are not started from memory on " + runtime.GOOS)
}

func startOf(f *os.File) []string { return []string{f.Name()} }
