package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

const (
	many      = 1000
	manyBytes = 100 << 10
)

// thousand measures how soon a server is ready that has a thousand modules of
// 100 KB, all of which it has seen before. The files are in the page cache.
func thousand(ctx context.Context, r *report, s setup) error {
	tools, state := filepath.Join(s.scratch, "thousand"), filepath.Join(s.scratch, "thousand-state")
	if err := makeMany(tools); err != nil {
		return err
	}
	first, known, err := startOften(ctx, s.hutch, tools, state)
	if err != nil {
		return err
	}
	r.add(
		figure{Name: "start with 1,000 known modules of 100 KB, p50", Program: "hutch serve", Value: milliseconds(known[starts/2]), Unit: "ms", AtMost: 1000}.
			beside("first start", milliseconds(first)),
		figure{Name: "the same, the slowest of seven", Program: "hutch serve", Value: milliseconds(known[starts-1]), Unit: "ms", AtMost: 1000},
	)
	return nil
}

// makeMany writes a thousand modules of a tool each, filled up with a section of
// bytes that no two of them share.
func makeMany(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	const filling = manyBytes - 4<<10
	for i := range many {
		m := dialecttest.Module{Tools: []tool.Spec{dialecttest.Spec(fmt.Sprintf("tool_%d", i))}}
		m.Manifest = m.Description() // nothing has to be started to read it
		var seed [32]byte
		binary.LittleEndian.PutUint64(seed[:], uint64(i))
		rest := make([]byte, filling)
		if _, err := rand.NewChaCha8(seed).Read(rest); err != nil {
			return err
		}
		body := binary.AppendUvarint(append(m.Bytes(), 0), uint64(len(rest)+2))
		body = append(append(body, 1, 'x'), rest...)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("m%04d.wasm", i)), body, 0o644); err != nil {
			return err
		}
	}
	return nil
}
