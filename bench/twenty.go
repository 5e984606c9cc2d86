package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	modules = 20
	starts  = 7 // of which the median counts
)

// twenty measures a server with twenty Go modules of its own beside the shipped
// ones: its first start, the next ones, and what it needs when nobody calls.
func twenty(ctx context.Context, r *report, s setup) error {
	tools, state := filepath.Join(s.scratch, "tools"), filepath.Join(s.scratch, "state")
	if err := makeModules(ctx, tools); err != nil {
		return err
	}
	first, known, err := startOften(ctx, s.hutch, tools, state)
	if err != nil {
		return err
	}
	empty := filepath.Join(s.scratch, "empty")
	if err := os.MkdirAll(empty, 0o755); err != nil {
		return err
	}
	_, resident, err := start(ctx, s.hutch, tools, state, 2*time.Second)
	if err != nil {
		return err
	}
	_, bare, err := start(ctx, s.hutch, empty, state, 2*time.Second)
	if err != nil {
		return err
	}
	r.add(
		figure{Name: "start with 20 known modules", Program: "hutch serve", Value: milliseconds(known[starts/2]), Unit: "ms", AtMost: 300}.
			beside("first start", milliseconds(first)),
		figure{Name: "parent, idle with 20 modules", Program: "hutch serve", Value: resident, Unit: "MB", AtMost: 80}.
			beside("with none", bare),
	)
	return nil
}

// startOften starts a server that has seen none of its modules, and then again and
// again; known are the times of those later starts, the shortest first.
func startOften(ctx context.Context, hutch, tools, state string) (first time.Duration, known []time.Duration, err error) {
	if first, _, err = start(ctx, hutch, tools, state, 0); err != nil {
		return 0, nil, err
	}
	for range starts {
		took, _, err := start(ctx, hutch, tools, state, 0)
		if err != nil {
			return 0, nil, err
		}
		known = append(known, took)
	}
	slices.Sort(known)
	return first, known, nil
}

// makeModules builds one guest and writes it twenty times, each with a tool of
// another name and so with other bytes.
func makeModules(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	built := filepath.Join(dir, "guest")
	if err := buildEcho(ctx, built); err != nil {
		return err
	}
	wasm, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	if err := os.Remove(built); err != nil {
		return err
	}
	const name = "bench_echo_"
	if !bytes.Contains(wasm, []byte(name+"00")) {
		return errors.New("the guest's tool name is not in its file as one piece")
	}
	for i := range modules {
		own := bytes.ReplaceAll(wasm, []byte(name+"00"), fmt.Appendf(nil, "%s%02d", name, i))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("echo%02d.wasm", i)), own, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// buildEcho builds the guest of the benchmarks.
func buildEcho(ctx context.Context, out string) error {
	build := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", out, "./guest")
	build.Dir, build.Env, build.Stderr = "bench", append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm"), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the guest: %w", err)
	}
	return nil
}

// start runs a server until it is ready and has then been idle for a while. It
// returns how long it took to be ready, and its resident memory in MB at the end.
func start(ctx context.Context, hutch, tools, state string, idle time.Duration) (time.Duration, float64, error) {
	addr, err := freeAddr()
	if err != nil {
		return 0, 0, err
	}
	var said bytes.Buffer
	server := exec.CommandContext(ctx, hutch, "serve", "--tools", tools, "--state", state, "--addr", addr)
	server.Stderr = &said
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	server.WaitDelay = 10 * time.Second
	began := time.Now()
	if err := server.Start(); err != nil {
		return 0, 0, err
	}
	defer func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	}()
	if err := awaitReady(ctx, "http://"+addr+"/readyz"); err != nil {
		return 0, 0, fmt.Errorf("%w; it said: %s", err, said.String())
	}
	took := time.Since(began)
	time.Sleep(idle)
	resident, err := residentMB(server.Process.Pid)
	return took, resident, err
}

func awaitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			if err := resp.Body.Close(); err != nil {
				return err
			}
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server did not get ready: %w", ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// residentMB reads VmRSS, in units of 10^6 bytes.
func residentMB(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib * 1024 / 1e6, err
		}
	}
	return 0, errors.New("no VmRSS in /proc: this needs Linux")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
