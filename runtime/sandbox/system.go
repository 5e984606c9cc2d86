package sandbox

import (
	"bytes"
	"crypto/rand"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"
)

// tick is how exactly a guest may tell the time: finer clocks time other
// processes' secrets.
const tick = time.Millisecond

// system gives an instance clocks, sleep and random numbers; the engine's
// defaults are fixed ones.
func (in *Instance) system(c wazero.ModuleConfig) wazero.ModuleConfig {
	return c.WithRandSource(randomReader{in}).
		WithWalltime(walltime, sys.ClockResolution(tick)).
		WithNanotime(in.nanotime, sys.ClockResolution(tick)).
		WithNanosleep(in.sleep)
}

func walltime() (sec int64, nsec int32) {
	now := time.Now().Truncate(tick)
	return now.Unix(), int32(now.Nanosecond())
}

// nanotime counts from when the module was compiled, never from 0, which some
// guests take for "not set".
func (in *Instance) nanotime() int64 {
	return int64((time.Since(in.owner.started) + tick).Truncate(tick))
}

// sleep pauses the guest until the time is over or nobody waits for it.
func (in *Instance) sleep(ns int64) {
	if ns <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-in.ctx.Done():
	}
}

// randomReader gives random numbers, which cost as much as they take: more of them
// than fit a slice are many reads.
type randomReader struct{ in *Instance }

const randomBytes = 64 << 10

func (r randomReader) Read(b []byte) (int, error) {
	b = b[:min(len(b), randomBytes)]
	r.in.burn(r.in.ctx, uint64(len(b)))
	return rand.Read(b)
}

// Random fills b, of at most 64 KiB, as the guest's own random numbers are made.
func (in *Instance) Random(b []byte) { _, _ = randomReader{in}.Read(b) } // it never fails

// lineWriter cuts what a guest prints into lines, keeping no more of one than
// most.
type lineWriter struct {
	fd   int
	emit func(fd int, line []byte)
	most int
	line []byte
	some bool // the line has begun, even if it is empty
	in   *Instance
}

const defaultLineBytes = 8 << 10

// printedBytes is how much of what a guest prints is taken at a time: of a megabyte of
// empty lines each would be handed over before anybody asks whether the call has ended.
const printedBytes = 64 << 10

// Write takes everything and never fails: a guest's print is no reason to end
// it.
func (w *lineWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > printedBytes {
		w.write(b[:printedBytes])
		b = b[printedBytes:]
		w.in.ask(w.in.ctx)
	}
	w.write(b)
	return n, nil
}

func (w *lineWriter) write(b []byte) {
	w.in.burn(w.in.ctx, uint64(len(b))>>bytesUnit)
	if w.emit == nil {
		return
	}
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		w.keep(line)
		b = rest
		if whole {
			w.some = true
			w.flush()
		}
	}
}

func (w *lineWriter) keep(b []byte) {
	most := w.most
	if most == 0 {
		most = defaultLineBytes
	}
	w.some = w.some || len(b) > 0
	w.line = append(w.line, b[:min(len(b), most-len(w.line))]...)
}

// flush hands over what there is of a line.
func (w *lineWriter) flush() {
	if !w.some || w.emit == nil {
		return
	}
	line := w.line
	w.line, w.some = w.line[:0], false // before emit, which may panic
	w.emit(w.fd, line)
}
