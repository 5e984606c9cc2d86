package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"
)

// BenchmarkRestore is what it takes to undo a call that wrote some pages of memory, and
// read none or all of it, without the writing.
//
//	go test ./runtime/sandbox -run '^$' -bench Restore
func BenchmarkRestore(b *testing.B) {
	for _, size := range []int{1 << 20, 16 << 20, 64 << 20, 256 << 20} {
		for _, dirty := range []int{0, 16, 256, 4096} {
			if dirty*os.Getpagesize() > size {
				continue
			}
			for _, read := range []int{0, size} {
				b.Run(fmt.Sprintf("%dMiB/%dpages/%dMiBread", size>>20, dirty, read>>20), func(b *testing.B) {
					memory, i, entries := pagedMemory(b, size)
					var took time.Duration
					for b.Loop() {
						bytes.Count(memory[:read], []byte{1})
						for page := range dirty {
							memory[page*(size/dirty)]++
						}
						began := time.Now()
						if err := i.restore(memory, entries); err != nil {
							b.Fatal(err)
						}
						took += time.Since(began)
					}
					b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/1e3, "restore-us")
				})
			}
		}
	}
}

// pagedMemory returns a memory without a zero page, and its image.
func pagedMemory(b *testing.B, size int) ([]byte, *image, *memory) {
	b.Helper()
	pages, err := OpenPages(int64(size))
	if err != nil {
		b.Fatal(err)
	}
	m := reserve(uint64(size))
	b.Cleanup(func() {
		m.Free()
		if err := pages.Close(); err != nil {
			b.Error(err)
		}
	})
	all := m.Reallocate(uint64(size))
	for at := 0; at < size; at += 1 << 10 {
		all[at] = 1
	}
	kept, err := (&Module{pages: pages}).keepImage(all)
	if err != nil {
		b.Fatal(err)
	}
	return all, kept, &memory{}
}
