package dialect

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
)

// journal takes the log lines of one call: what the guest logs, and what it
// prints. It keeps the first lines, cut and cleaned, and counts the rest.
type journal struct {
	emit      func(abi.LogLevel, string) // nil drops everything
	mostLines int
	mostBytes int
	lines     int // written so far, dropped ones included
}

func (j *journal) write(level abi.LogLevel, line []byte) {
	j.lines++
	if j.emit == nil || j.lines > j.mostLines {
		return
	}
	j.emit(min(max(level, abi.Trace), abi.Error), abi.OneLine(string(line), j.mostBytes))
}

// close says how many lines were dropped, if any were.
func (j *journal) close() {
	if j.emit != nil && j.lines > j.mostLines {
		j.emit(abi.Warn, fmt.Sprintf("... %d more lines dropped: at most %d are kept of one call (%s)", j.lines-j.mostLines, j.mostLines, abi.LimitLogLines.Key()))
	}
}

const (
	// maxProgressBytes bounds one report of progress.
	maxProgressBytes = 4 << 10
	// reportsPerSecond bounds how often progress is passed on.
	reportsPerSecond = 20
)

// reports passes a call's progress on, a bounded number each second.
type reports struct {
	emit   func(json.RawMessage) // nil drops everything
	second time.Time             // when the current second began
	count  int                   // reports in it
}

// report returns 0 for what was passed on or dropped for being too often, else
// [badPointer].
func (r *reports) report(body []byte) int {
	if now := time.Now(); now.Sub(r.second) >= time.Second {
		r.second, r.count = now, 0
	}
	if r.count++; r.count > reportsPerSecond {
		return 0
	}
	if !isProgress(body) {
		return badPointer
	}
	if r.emit != nil {
		r.emit(body)
	}
	return 0
}

// isProgress reports whether body is {"progress":n,"total"?:n,"message"?:s}.
func isProgress(body []byte) bool {
	if rawjson.Check(body, 2) != nil {
		return false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields["progress"] == nil {
		return false
	}
	for name, value := range fields {
		var want any
		switch name {
		case "progress", "total":
			want = new(float64)
		case "message":
			want = new(string)
		default:
			return false
		}
		if string(value) == "null" || json.Unmarshal(value, want) != nil {
			return false
		}
	}
	return true
}
