package worker

import (
	"syscall"
	"unsafe"
)

// memoryCounters is PROCESS_MEMORY_COUNTERS of psapi.h.
type memoryCounters struct {
	size              uint32
	pageFaults        uint32
	peakWorkingSet    uintptr
	workingSet        uintptr
	quotaPeakPaged    uintptr
	quotaPaged        uintptr
	quotaPeakNonPaged uintptr
	quotaNonPaged     uintptr
	pagefileUsage     uintptr
	peakPagefileUsage uintptr
}

const queryLimitedInformation = 0x1000

// residentBytes returns the working set of each process. A process that is gone
// is left out.
func residentBytes(pids []int) map[int]int64 {
	// Since Windows 7 the function lives in kernel32 under this name.
	query := syscall.NewLazyDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")
	found := make(map[int]int64, len(pids))
	if query.Find() != nil {
		return found
	}
	for _, pid := range pids {
		process, err := syscall.OpenProcess(queryLimitedInformation, false, uint32(pid))
		if err != nil { // ended since
			continue
		}
		var c memoryCounters
		c.size = uint32(unsafe.Sizeof(c))
		if ok, _, _ := query.Call(uintptr(process), uintptr(unsafe.Pointer(&c)), uintptr(c.size)); ok != 0 {
			found[pid] = int64(c.workingSet)
		}
		_ = syscall.CloseHandle(process) // nothing depends on it
	}
	return found
}
