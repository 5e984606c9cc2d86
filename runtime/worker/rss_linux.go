package worker

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// residentBytes returns the resident memory of each process, shared pages of the
// program's file included. A process that is gone is left out.
func residentBytes(pids []int) map[int]int64 {
	found := make(map[int]int64, len(pids))
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil { // ended since
			continue
		}
		fields := bytes.Fields(text)
		if len(fields) < 2 {
			continue
		}
		if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
			found[pid] = pages * int64(os.Getpagesize())
		}
	}
	return found
}
