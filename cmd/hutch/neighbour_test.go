package main

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkNeighbour is a good tool's call over MCP and a look at /healthz, alone
// and beside a module whose calls never end.
func BenchmarkNeighbour(b *testing.B) {
	for _, beside := range []string{"alone", "spinner"} {
		b.Run(beside, func(b *testing.B) { benchNeighbour(b, beside == "spinner") })
	}
}

func benchNeighbour(b *testing.B, hostile bool) {
	s := startServe(b, func(c *Config) {
		c.Limits.Call.Wall, c.Limits.Deaths = 500*time.Millisecond, 1000 // else it would be quarantined
	})
	defer s.halt(b)
	s.drop(b, "good.wasm", greeter("good", "hello"))
	s.drop(b, "e.wasm", endlessModule(`{"tools":[{"name":"e","description":"Never ends.","inputSchema":{"type":"object","properties":{}}}]}`))
	session, changed := s.connect(b)
	defer session.Close() //nolint:errcheck // the server goes with it
	for list, err := session.ListTools(b.Context(), nil); len(list.Tools) < 2; list, err = session.ListTools(b.Context(), nil) {
		if err != nil {
			b.Fatal(err)
		}
		<-changed
	}
	ctx, cancel := context.WithCancel(b.Context())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer cancel()
	call := func(ctx context.Context, name string) error {
		_, err := session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: map[string]any{}})
		return err
	}
	if hostile {
		for range 2 {
			callers.Go(func() {
				for ctx.Err() == nil {
					_ = call(ctx, "e") // it is stopped, or cancelled
				}
			})
		}
	}
	var calls, health []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := call(b.Context(), "good"); err != nil {
			b.Fatal(err)
		}
		calls = append(calls, time.Since(began))
		began = time.Now()
		r, err := http.Get(s.url + "/healthz")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			b.Fatal(err)
		}
		if err := r.Body.Close(); err != nil {
			b.Fatal(err)
		}
		health = append(health, time.Since(began))
	}
	for unit, took := range map[string][]time.Duration{"call": calls, "health": health} {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, unit+"-p50-us")
		b.ReportMetric(float64(took[(len(took)-1)*99/100].Nanoseconds())/1e3, unit+"-p99-us")
	}
}
