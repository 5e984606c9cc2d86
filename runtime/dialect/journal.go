package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// write takes what the guest logs at once: no more than a line may have, though a
// stack trace has many.
func (j *journal) write(level abi.LogLevel, text []byte) {
	whole := strings.TrimRight(abi.Cut(string(text), j.mostBytes), "\r\n")
	for line := range strings.SplitSeq(whole, "\n") {
		j.line(level, line)
	}
}

func (j *journal) line(level abi.LogLevel, line string) {
	j.lines++
	if j.emit == nil || j.lines > j.mostLines {
		return
	}
	j.emit(min(max(level, abi.Trace), abi.Error), abi.OneLine(line, j.mostBytes))
}

// close says how many lines were dropped, if any were.
func (j *journal) close() {
	if j.emit != nil && j.lines > j.mostLines {
		j.emit(abi.Warn, fmt.Sprintf("... %d more lines dropped: at most %d are kept of one call (%s)", j.lines-j.mostLines, j.mostLines, abi.LimitLogLines.Key()))
	}
}

// complaint keeps the first line that a guest warns of or prints as it breaks.
type complaint struct{ text string }

func (c *complaint) take(level abi.LogLevel, line string) {
	if line = strings.TrimSpace(line); c.text == "" && level >= abi.Warn {
		c.text = abi.OneLine(line, maxComplaint)
	}
}

// maxComplaint bounds what of a guest's own words stands in the reason why it
// cannot be used.
const maxComplaint = 200

// explain adds what the guest complained of to why it could not describe itself,
// where the engine alone knows only that it trapped or left.
func (c *complaint) explain(err error) error {
	var f *abi.Failure
	if c.text == "" || !errors.As(err, &f) || f.Class != abi.ClassTrap {
		return err
	}
	said := *f
	said.Text = f.Text + ": " + c.text
	return &said
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
