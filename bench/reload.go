package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const (
	reloads  = 100
	echoFile = "echo.wasm"
)

// reload measures how soon a host is told that a tool is another one: from the rename
// that puts a version into the folder, which hutch had before, to the notification.
// Versions take turns in one Go module. Each is written beside its place and renamed
// at once, as a careful program does.
func reload(ctx context.Context, r *report, s setup) (err error) {
	folder, state := filepath.Join(s.scratch, "reload"), filepath.Join(s.scratch, "reload-state")
	versions, err := twoVersions(ctx, folder)
	if err != nil {
		return err
	}
	for _, i := range []int{1, 0} {
		if err := makeKnown(ctx, s.hutch, folder, state, versions[i]); err != nil {
			return err
		}
	}
	host, err := openHost(ctx, s.hutch, folder, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.close()) }()
	if err := host.settle(ctx); err != nil {
		return err
	}
	var apart, inARow []time.Duration
	for i := range reloads {
		time.Sleep(300 * time.Millisecond) // what was told before is over
		took, err := host.replace(ctx, versions[1-i%2])
		if err != nil {
			return err
		}
		apart = append(apart, took)
	}
	for i := range reloads / 5 {
		took, err := host.replace(ctx, versions[1-i%2])
		if err != nil {
			return err
		}
		inARow = append(inARow, took)
	}
	slices.Sort(apart)
	slices.Sort(inARow)
	const name = "from the rename of a known module to list_changed over MCP"
	r.add(
		figure{Name: name + ", p50", Program: "hutch mcp", Value: milliseconds(apart[reloads/2]), Unit: "ms", AtMost: 250}.
			beside("as soon as the one before was told", milliseconds(inARow[len(inARow)/2])),
		figure{Name: name + ", p99", Program: "hutch mcp", Value: milliseconds(apart[reloads*99/100]), Unit: "ms", AtMost: 250},
	)
	return nil
}

// twoVersions returns a Go module whose tool is described in two ways.
func twoVersions(ctx context.Context, folder string) (versions [2][]byte, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return versions, err
	}
	built := folder + ".wasm"
	if err := buildEcho(ctx, built); err != nil {
		return versions, err
	}
	if versions[0], err = os.ReadFile(built); err != nil {
		return versions, err
	}
	const says = "Gives a text back."
	if !bytes.Contains(versions[0], []byte(says)) {
		return versions, errors.New("the guest's description is not in its file as one piece")
	}
	versions[1] = bytes.ReplaceAll(versions[0], []byte(says), []byte("Gives text back..."))
	return versions, nil
}

// makeKnown lets hutch read a version, and leaves it in the folder.
func makeKnown(ctx context.Context, hutch, folder, state string, version []byte) error {
	if err := os.WriteFile(filepath.Join(folder, echoFile), version, 0o644); err != nil {
		return err
	}
	list := exec.CommandContext(ctx, hutch, "tools", "list", "--tools", folder, "--state", state, "--dev")
	out, err := list.CombinedOutput()
	if err == nil && !bytes.Contains(out, []byte("bench_echo_00")) {
		err = errors.New("the tool is not listed")
	}
	if err != nil {
		return fmt.Errorf("hutch tools list: %w; it said: %s", err, out)
	}
	return nil
}

// A host is what starts "hutch mcp" and is told of changes.
type host struct {
	folder string
	hutch  *exec.Cmd
	input  io.WriteCloser
	told   chan time.Time // when the list was another one
	listed chan bool      // whether it had the tool when it was asked for
	said   bytes.Buffer
}

func openHost(ctx context.Context, hutch, folder, state string) (*host, error) {
	h := &host{folder: folder, told: make(chan time.Time, 10), listed: make(chan bool, 1)}
	h.hutch = exec.CommandContext(ctx, hutch, "mcp", "--tools", folder, "--state", state, "--dev")
	h.hutch.Stderr = &h.said
	input, err := h.hutch.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := h.hutch.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.input = input
	if err := h.hutch.Start(); err != nil {
		return nil, err
	}
	go h.read(output)
	_, err = io.WriteString(input, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *host) read(output io.Reader) {
	defer close(h.told)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch line := lines.Bytes(); {
		case bytes.Contains(line, []byte(`"notifications/tools/list_changed"`)):
			h.told <- time.Now()
		case bytes.Contains(line, []byte(`"id":1`)):
			h.listed <- bytes.Contains(line, []byte("bench_echo_00"))
		}
	}
}

// settle waits until the list is whole and nothing more of the start is told.
func (h *host) settle(ctx context.Context) error {
	if _, err := io.WriteString(h.input, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`+"\n"); err != nil {
		return err
	}
	select {
	case there := <-h.listed:
		if !there {
			return errors.New("the tool is not listed at the start")
		}
	case <-time.After(time.Minute):
		return errors.New("the tools were not listed within a minute")
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		select {
		case <-h.told:
		case <-time.After(2 * time.Second):
			return nil
		}
	}
}

// replace puts a version into the folder and returns how long it took until that
// was told.
func (h *host) replace(ctx context.Context, version []byte) (time.Duration, error) {
	place := filepath.Join(h.folder, echoFile)
	if err := os.WriteFile(place+".tmp", version, 0o644); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := os.Rename(place+".tmp", place); err != nil {
		return 0, err
	}
	select {
	case at, alive := <-h.told:
		if !alive {
			return 0, errors.New("hutch mcp has ended")
		}
		return at.Sub(began), nil
	case <-time.After(time.Minute):
		return 0, errors.New("the change was not told within a minute")
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// close ends the host's input, and with it hutch.
func (h *host) close() error {
	err := h.input.Close()
	for range h.told { // until its output ends
	}
	if werr := h.hutch.Wait(); werr != nil {
		err = errors.Join(err, fmt.Errorf("hutch mcp: %w; it said: %s", werr, h.said.String()))
	}
	return err
}
