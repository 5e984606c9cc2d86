//go:build !linux && !windows

package worker

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// residentBytes asks ps, which every Unix has and which may read what the kernel
// does not show us. A process that is gone is left out.
func residentBytes(pids []int) map[int]int64 {
	found := make(map[int]int64, len(pids))
	if len(pids) == 0 {
		return found
	}
	list := make([]string, len(pids))
	for i, pid := range pids {
		list[i] = strconv.Itoa(pid)
	}
	// ps exits with 1 if any of them is gone, and still prints the others.
	text, _ := exec.Command("/bin/ps", "-o", "pid=,rss=", "-p", strings.Join(list, ",")).Output()
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var pid int
		var kib int64
		if n, err := fmt.Sscan(lines.Text(), &pid, &kib); err == nil && n == 2 {
			found[pid] = kib << 10
		}
	}
	return found
}
