package reload

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// D06: a file over the limit is refused by its size, before a byte of it is read.
func TestD06_LargeFilesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "large.wasm")
	write(t, path, "")
	w := New([]string{dir}, Options{Blobs: openBlobs(t), Stable: time.Nanosecond})
	for _, size := range []int64{16<<20 + 1, 1 << 38} {
		must(t, os.Truncate(path, size))
		before := bytesRead(t)
		set := w.Scan(t.Context())
		if len(set) != 1 || set[0].Err == nil || !strings.HasSuffix(set[0].Err.Error(), " bytes, at most 16777216") {
			t.Errorf("%d bytes: Scan = %+v", size, set)
		}
		if n := bytesRead(t) - before; n > 1<<20 {
			t.Errorf("%d bytes: %d of them were read", size, n)
		}
	}
}

// bytesRead is how much this process has read from anywhere.
func bytesRead(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	must(t, err)
	_, rest, _ := bytes.Cut(text, []byte("rchar: "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(line))
	must(t, err)
	return n
}
