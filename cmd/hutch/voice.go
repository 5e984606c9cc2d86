package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/hutch-run/hutch/protocol/abi"
)

// voice writes what hutch itself has to say, as lines that start with
// "hutch:". Its lines go to standard error, so standard output stays what was
// asked for. The zero value of mu makes it usable at once; one voice may be
// used from several goroutines.
type voice struct {
	w  io.Writer
	mu sync.Mutex
	// live is true if a line that will be overwritten stands on the terminal.
	live bool
}

// line writes one line. What came from a file or a peer loses its control
// characters: it must not move the cursor or forge a second line.
func (v *voice) line(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	v.write("hutch: " + oneLine(fmt.Sprintf(format, args...)) + "\n")
}

// dim is line, in a colour that steps back if there are colours.
func (v *voice) dim(colour bool, format string, args ...any) {
	if !colour {
		v.line(format, args...)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	v.write("\x1b[2mhutch: " + oneLine(fmt.Sprintf(format, args...)) + "\x1b[0m\n")
}

// working shows what takes long. On a terminal the next line replaces it; off
// a terminal it is a line like any other.
func (v *voice) working(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.show(fmt.Sprintf(format, args...))
}

// show needs the lock.
func (v *voice) show(text string) {
	v.clear()
	text = "hutch: " + oneLine(text)
	if !isTerminal(v.w) {
		v.write(text + "\n")
		return
	}
	v.live = true
	v.write(text)
}

// slowly is working for what is often quick: it shows nothing before a while
// has passed, and nothing off a terminal. stop takes it away.
func (v *voice) slowly(text string) (stop func()) {
	if !isTerminal(v.w) {
		return func() {}
	}
	return v.after(liveEvery, text)
}

// longAfter is when what is going on is worth a line off a terminal too.
const longAfter = 2 * time.Second

// eventually is working for what is quick but the first time.
func (v *voice) eventually(text string) (stop func()) { return v.after(longAfter, text) }

func (v *voice) after(d time.Duration, text string) (stop func()) {
	stopped := false // guarded by mu
	timer := time.AfterFunc(d, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if !stopped {
			v.show(text)
		}
	})
	return func() {
		timer.Stop()
		v.mu.Lock()
		defer v.mu.Unlock()
		stopped = true
		v.clear()
	}
}

// done takes away what working has left.
func (v *voice) done() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
}

func (v *voice) clear() {
	if v.live {
		v.live = false
		v.write("\r\x1b[K")
	}
}

// write ignores errors: there is nowhere left to say that standard error is
// closed.
func (v *voice) write(s string) { _, _ = io.WriteString(v.w, s) }

// Write lets a logger share the voice's stream without breaking a live line.
func (v *voice) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	return v.w.Write(p)
}

func isTerminal(w any) bool {
	if d, ok := w.(*drain); ok {
		w = d.w
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// widthOf is how many columns a terminal has, 80 if it does not say. Where there
// is no terminal, nothing has to fit.
func widthOf(w any) int {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(w) {
		return math.MaxInt
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return 80
	}
	return columns
}

// oneLine returns s as one line that is seen as it is: a line break and what
// follows it become "; ", what is hidden is escaped, for people have to recognise
// names.
func oneLine(s string) string {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "\r\n") {
		s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	}
	return escape(s, abi.Hidden)
}

// printable returns s as a terminal may show it: line breaks and tabs stay, and the
// joiners that scripts and emoji need; what else is hidden is escaped.
func printable(s string) string {
	return escape(s, func(r rune) bool { return abi.Hidden(r) && !strings.ContainsRune("\n\t\u200c\u200d", r) })
}

func escape(s string, unsafe func(rune) bool) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, unsafe) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unsafe(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// printJSON writes v indented, for programs and for people who look anyway: on
// a terminal it shows nothing that would act on it.
func printJSON(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	text := b.String()
	if isTerminal(w) {
		text = printable(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// quoted returns what came from outside in quotes, cut to a length.
func quoted(s string) string { return strconv.Quote(abi.Cut(s, 80)) }

// text writes lines as they are, for commands to copy.
func (v *voice) text(s string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	v.write(printable(s))
}
