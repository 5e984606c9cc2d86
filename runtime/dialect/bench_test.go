package dialect

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
)

// BenchmarkMegabyte passes 1,000,000 bytes to a Go guest and back, on a fresh
// instance each time as calls are made: through hutch:host in one piece each
// way, and through extism:host/env eight bytes a call.
//
//	go test ./runtime/dialect -run '^$' -bench Megabyte
func BenchmarkMegabyte(b *testing.B) {
	arguments := json.RawMessage(`{"text":"` + string(bytes.Repeat([]byte("x"), 999_989)) + `"}`)
	for _, guest := range []struct{ name, build string }{{"hutch", "rawguest"}, {"v1", "pdkecho"}} {
		b.Run(guest.name, func(b *testing.B) {
			g := benchmarked(b, guest.build)
			b.SetBytes(int64(2 * len(arguments)))
			for b.Loop() {
				out, _, err := g.Call(b.Context(), 1, abi.Invocation{Tool: "echo", Arguments: arguments, Limits: abi.Limits{OutputBytes: 2 << 20}})
				if err != nil || len(out) < len(arguments) {
					b.Fatalf("%d bytes, %v", len(out), err)
				}
			}
		})
	}
}

// BenchmarkFreshInstance is the same with a few bytes: what an instance costs.
func BenchmarkFreshInstance(b *testing.B) {
	for _, guest := range []struct{ name, build string }{{"hutch", "rawguest"}, {"v1", "pdkecho"}} {
		b.Run(guest.name, func(b *testing.B) {
			g := benchmarked(b, guest.build)
			for b.Loop() {
				if _, _, err := g.Call(b.Context(), 1, abi.Invocation{Tool: "echo"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchmarked(b *testing.B, name string) *Guest {
	b.Helper()
	wasm, err := os.ReadFile(goBuild(b, name, true))
	if err != nil {
		b.Fatal(err)
	}
	g, err := Load(b.Context(), wasm, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return g
}

// BenchmarkLoad loads a Go guest: compiling it, and from the cache.
func BenchmarkLoad(b *testing.B) {
	wasm, err := os.ReadFile(goBuild(b, "pdkguest", true))
	if err != nil {
		b.Fatal(err)
	}
	load := func(b *testing.B, o Options) {
		g, err := Load(b.Context(), wasm, o)
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			load(b, Options{})
		}
	})
	b.Run("cached", func(b *testing.B) {
		o := Options{CacheDir: b.TempDir()}
		load(b, o)
		for b.Loop() {
			load(b, o)
		}
	})
}
