package store_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hutch-run/hutch/runtime/store"
)

// BenchmarkEngines keeps values of 1 KiB, by so many writers at once, and reads one.
func BenchmarkEngines(b *testing.B) {
	for _, e := range []struct {
		name  string
		place func(testing.TB) string
	}{
		{"SQLite", func(t testing.TB) string { return filepath.Join(t.TempDir(), "hutch.db") }},
		{"PostgreSQL", server.Database},
	} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/writers=%d", e.name, writers), func(b *testing.B) {
				benchWriters(b, openAt(b, e.place(b), store.Options{}), writers)
			})
		}
		b.Run(e.name+"/read", func(b *testing.B) {
			db := openAt(b, e.place(b), store.Options{})
			if err := keep(b.Context(), db, "a"); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, version, _, err := db.KVGet(b.Context(), "space", "a"); err != nil || version == 0 {
					b.Fatal(version, err)
				}
			}
		})
	}
}

// benchWriters has the writers make b.N changes among them.
func benchWriters(b *testing.B, db *store.DB, writers int) {
	value := make([]byte, 1024)
	var made atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		wg.Go(func() {
			for n := made.Add(1); n <= int64(b.N); n = made.Add(1) {
				_, _, err := db.KVPut(b.Context(), "space", fmt.Sprint(w, "/", n%1000), "bench", value, 0, store.AnyVersion, 1<<40)
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
}
