package store

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

func openBench(b *testing.B) *DB {
	db, err := Open(b.Context(), filepath.Join(b.TempDir(), "hutch.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return db
}

// benchWrite is the change that the benchmarks make: 1 KiB under one of many keys.
func benchWrite(writer, i int) KVWrite {
	return KVWrite{
		Space: "space", Key: fmt.Sprint(writer, "/", i%1000), Writer: "bench", Value: make([]byte, 1024),
		IfVersion: AnyVersion, MaxBytes: 1 << 30,
	}
}

// BenchmarkGroupCommit makes the same changes in a plain loop of transactions, each
// synced, and by 16 writers at once, taking turns so that both meet the same disk.
// The ratio is how many times as many of the latter are made in the same time. All
// are of the median turn: one that the machine was busy with something else in says
// nothing.
func BenchmarkGroupCommit(b *testing.B) {
	const turn = 128 // changes
	loopDB, groupDB := openBench(b), openBench(b)
	loopDB.stop() // from here on its connection is the loop's
	var loops, groups []time.Duration
	for b.Loop() {
		loops = append(loops, loopOf(b, loopDB.committer.s, turn))
		groups = append(groups, groupOf(b, groupDB, 16, turn))
	}
	loop, group := median(loops), median(groups)
	b.ReportMetric(turn/loop.Seconds(), "loop/s")
	b.ReportMetric(turn/group.Seconds(), "group/s")
	b.ReportMetric(float64(loop)/float64(group), "ratio")
	b.ReportMetric(0, "ns/op")
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func loopOf(b *testing.B, s *session, n int) time.Duration {
	start := time.Now()
	for i := range n {
		if _, err := s.exec(s.engine.beginWrite); err != nil {
			b.Fatal(err)
		}
		tx := Tx{&transaction{ctx: context.Background(), s: s, now: time.Now(), write: true}}
		if _, _, err := tx.KVPut(benchWrite(0, i)); err != nil {
			b.Fatal(err)
		}
		if _, err := s.exec(commit); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

func groupOf(b *testing.B, db *DB, writers, n int) time.Duration {
	start := time.Now()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < n; i += writers {
				if err := db.Update(b.Context(), func(tx Tx) error { _, _, err := tx.KVPut(benchWrite(w, i)); return err }); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

func BenchmarkKVGet(b *testing.B) {
	db := openBench(b)
	groupOf(b, db, 1, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, version, _, err := db.KVGet(b.Context(), "space", "0/0"); err != nil || version == 0 {
			b.Fatal(version, err)
		}
	}
}
