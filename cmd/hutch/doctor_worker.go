package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
)

// checkWorker starts a worker, has the engine compile the smallest module there
// is and calls it: everything that has to work before any tool can.
func checkWorker(ctx context.Context, who patient) []finding {
	start := time.Now()
	err := roundTrip(ctx, who)
	if err != nil {
		err = hinted(err, "check that this user may start another process, and that memory is left")
	}
	return []finding{verdictOf("worker", err, fmt.Sprintf("starts, compiles and answers in %s", time.Since(start).Round(time.Millisecond)))}
}

func roundTrip(ctx context.Context, who patient) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	bench, err := openWorkbench(who.cfg, who.p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	r, m, err := bench.mount(ctx, "probe.wasm", probe(), registry.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := rejection(m); err != nil {
		return err
	}
	result, err := r.Call(ctx, localCaller("doctor"), tool.Call{Name: probeTool})
	if err == nil && resultText(result) != probeAnswer {
		err = fmt.Errorf("the probe answered %s", quoted(resultText(result)))
	}
	return err
}

const (
	probeTool   = "probe"
	probeAnswer = "alive"
)

// probe is a module with one tool.
func probe() []byte {
	return fixedModule(`{"tools":[{"name":"`+probeTool+`","description":"Answers.","inputSchema":{"type":"object"}}]}`,
		`{"content":[{"type":"text","text":"`+probeAnswer+`"}]}`)
}

// fixedModule assembles a native module (docs/tool-authors.md, "What a module
// is") whose describe and call each write a text that lies in its memory.
func fixedModule(said, answer string) []byte {
	return nativeModule(said+answer, wasmWriter(0, len(said)), wasmWriter(len(said), len(answer)))
}

// nativeModule assembles a module from what lies in its memory and the bodies
// of describe and call. Function 0 is output_write.
func nativeModule(data, describe, call string) []byte {
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		wasmSection(1, wasmList("\x60\x02\x7f\x7f\x01\x7f", "\x60\x00\x01\x7f")), // (i32, i32) -> i32 and () -> i32
		wasmSection(2, wasmList(wasmName("hutch:host")+wasmName("output_write")+"\x00\x00")),
		wasmSection(3, wasmList("\x01", "\x01")), // functions 1 and 2
		wasmSection(5, wasmList("\x00\x01")),     // one page
		wasmSection(7, wasmList(wasmName("memory")+"\x02\x00", wasmName("describe")+"\x00\x01", wasmName("call")+"\x00\x02")),
		wasmSection(10, wasmList(describe, call)),
		wasmSection(11, wasmList("\x00\x41\x00\x0b"+wasmName(data))), // at offset 0
	)
}

// wasmWriter is the body of a function that writes n bytes from offset and
// returns what output_write does.
func wasmWriter(offset, n int) string {
	return wasmName("\x00\x41" + wasmInt(offset) + "\x41" + wasmInt(n) + "\x10\x00\x0b")
}

func wasmSection(id byte, body string) []byte { return append([]byte{id}, wasmName(body)...) }

// wasmList is a vector of entries, wasmName one of bytes.
func wasmList(entries ...string) string {
	body := wasmUint(len(entries))
	for _, e := range entries {
		body += e
	}
	return body
}

func wasmName(s string) string { return wasmUint(len(s)) + s }

func wasmUint(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }

// wasmInt is the operand of i32.const: signed LEB128 of at least 0.
func wasmInt(n int) string {
	var b []byte
	for n > 0x3f {
		b = append(b, byte(n&0x7f|0x80))
		n >>= 7
	}
	return string(append(b, byte(n)))
}
