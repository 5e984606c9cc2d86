package guestlog_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/host/guestlog"
	"github.com/hutch-run/hutch/protocol/abi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func head(module string) guestlog.Head {
	return guestlog.Head{Module: module, Tool: "gh_search", CallID: "c1"}
}

func texts(lines []guestlog.Line) (all []string) {
	for _, l := range lines {
		all = append(all, l.Text)
	}
	return all
}

func hide(s string) (string, int) {
	return strings.ReplaceAll(s, "hunter2hunter2", "[redacted:token]"), strings.Count(s, "hunter2hunter2")
}

func TestLinesAreKeptAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		log := guestlog.New(guestlog.Options{Logger: logger, Redact: hide})
		call := log.Call(head("github.wasm"), abi.Limits{})
		began := time.Now()
		call.Write(abi.Info, "searching")
		time.Sleep(time.Second)
		call.Write(abi.LogLevel(99), "level\nof\x1b[31m its own hunter2hunter2")
		call.Write(abi.LogLevel(-1), "below")
		call.Close()
		got := log.Tail("github.wasm", 10)
		want := []guestlog.Line{
			{Time: began, Level: abi.Info, Tool: "gh_search", CallID: "c1", Text: "searching"},
			{Time: began.Add(time.Second), Level: abi.Error, Tool: "gh_search", CallID: "c1", Text: "level of\ufffd[31m its own [redacted:token]"},
			{Time: began.Add(time.Second), Level: abi.Trace, Tool: "gh_search", CallID: "c1", Text: "below"},
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("Tail = %v\nwant %v", got, want)
		}
		if got := log.Tail("github.wasm", 1); len(got) != 1 || got[0].Text != "below" {
			t.Errorf("the last line: %v", got)
		}
		if len(log.Tail("other.wasm", 10)) != 0 || len(log.Tail("github.wasm", -1)) != 0 {
			t.Error("lines of nobody")
		}
		text := out.String()
		if strings.Count(text, "\n") != 3 || strings.Count(text, "level=DEBUG") != 2 || strings.Contains(text, "hunter2") ||
			!strings.Contains(text, `msg="tool log" tool=gh_search module=github.wasm call=c1 guest_level=info line=searching redacted=0`) {
			t.Errorf("slog:\n%s", text)
		}
		log.Forget("github.wasm")
		if got := log.Tail("github.wasm", 10); got != nil {
			t.Errorf("forgotten: %v", got)
		}
	})
}

// What a guest warns of is seen without debugging, and a flood of it is not.
func TestWarningsOfGuestsAreLogged(t *testing.T) {
	var out bytes.Buffer
	log := guestlog.New(guestlog.Options{Logger: slog.New(slog.NewTextHandler(&out, nil))}) // info and above
	for calls := range 2 {
		call := log.Call(head("a.wasm"), abi.Limits{LogLines: 1000})
		call.Write(abi.Info, "chatter")
		call.Write(abi.Error, "panic: boom\nlevel=ERROR")
		for range 500 {
			call.Write(abi.Warn, "flood")
		}
		call.Close()
		text := out.String()
		if n := strings.Count(text, `msg="tool log"`); n != 100*(calls+1) {
			t.Errorf("%d lines after %d calls", n, calls+1)
		}
		if strings.Contains(text, "chatter") || !strings.Contains(text, `level=WARN msg="tool log" tool=gh_search module=a.wasm call=c1 guest_level=error line="panic: boom level=ERROR"`) {
			t.Errorf("logged: %.400s", text)
		}
	}
}

// A flood of lines, and one line that is a flood.
func TestE08_FloodsAreCapped(t *testing.T) {
	var out bytes.Buffer
	log := guestlog.New(guestlog.Options{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	call := log.Call(head("flood.wasm"), abi.Limits{})
	for range 1_000_000 {
		call.Write(abi.Info, "again")
	}
	call.Close()
	call.Write(abi.Info, "after the end")
	call.Close()
	got := texts(log.Tail("flood.wasm", 1_000_000))
	// One more than the limit: the worker's own word about what it dropped.
	const last = "... 999899 more lines dropped: at most 101 are kept of one call (limits.log_lines)"
	if len(got) != 102 || got[100] != "again" || got[101] != last {
		t.Errorf("%d lines, the last one %q", len(got), got[len(got)-1])
	}
	if n := strings.Count(out.String(), "\n"); n != 102 {
		t.Errorf("slog has %d lines", n)
	}
	for _, tt := range []struct{ length, most int }{{50 << 20, 0}, {8<<10 + 1, 0}, {11, 10}} {
		call := log.Call(head("long.wasm"), abi.Limits{LogLineBytes: tt.most})
		call.Write(abi.Info, strings.Repeat("x", tt.length))
		want := abi.Limits{LogLineBytes: tt.most}.WithDefaults().LogLineBytes
		if line := log.Tail("long.wasm", 1)[0].Text; len(line) != want || !strings.HasSuffix(line, "…") {
			t.Errorf("a line of %d bytes is kept with %d, want %d", tt.length, len(line), want)
		}
	}
}

// At its limits nothing is dropped, and the worker's word is kept.
func TestE08_AtTheLimits(t *testing.T) {
	log := guestlog.New(guestlog.Options{})
	call := log.Call(head("a.wasm"), abi.Limits{LogLines: 2, LogLineBytes: 8})
	for _, text := range []string{"12345678", "2", "... 7 mo"} {
		call.Write(abi.Info, text)
	}
	call.Close()
	early := log.Call(head("a.wasm"), abi.Limits{})
	early.Close()
	early.Write(abi.Info, "after the end")
	if got := texts(log.Tail("a.wasm", 10)); strings.Join(got, "|") != "12345678|2|... 7 mo" {
		t.Errorf("Tail = %q", got)
	}
}

// Whatever calls and modules there are, so much is kept and no more.
func TestE08_WhatIsKeptIsBounded(t *testing.T) {
	log := guestlog.New(guestlog.Options{Lines: 10, Bytes: 2000, Modules: 3})
	write := func(module, text string, n int) {
		call := log.Call(head(module), abi.Limits{LogLines: n})
		for i := range n {
			call.Write(abi.Info, fmt.Sprint(text, i))
		}
		call.Close()
	}
	write("a.wasm", "short ", 25)
	if got := texts(log.Tail("a.wasm", 100)); len(got) != 10 || got[0] != "short 15" || got[9] != "short 24" {
		t.Errorf("by lines: %q", got)
	}
	write("b.wasm", strings.Repeat("y", 500), 25)
	if got := log.Tail("b.wasm", 100); len(got) != 3 || !strings.HasSuffix(got[2].Text, "y24") {
		t.Errorf("by bytes: %d lines", len(got))
	}
	write("c.wasm", "c", 1)
	write("a.wasm", "again ", 1)
	write("d.wasm", "d", 1)
	for module, want := range map[string]int{"a.wasm": 10, "b.wasm": 0, "c.wasm": 1, "d.wasm": 1} {
		if got := len(log.Tail(module, 100)); got != want {
			t.Errorf("%s: %d lines, want %d: who was silent for longest goes", module, got, want)
		}
	}
}

// What is no text becomes text, on one line.
func TestE10_LinesAreCleanText(t *testing.T) {
	log := guestlog.New(guestlog.Options{})
	call := log.Call(head("a.wasm"), abi.Limits{})
	for _, tt := range []struct{ text, want string }{
		{"\xff\xfe", "\ufffd\ufffd"},
		{"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
		{"\xc0\x80", "\ufffd\ufffd"},
		{"a\r\nb\tc\u2028d", "a  b c d"},
		{"\x1b]0;title\a", "\ufffd]0;title\ufffd"},
		{"\u202egnp.exe\u200b", "\ufffdgnp.exe\ufffd"},
		{"время 👍", "время 👍"},
	} {
		call.Write(abi.Info, tt.text)
		if got := log.Tail("a.wasm", 1)[0].Text; got != tt.want || !utf8.ValidString(got) {
			t.Errorf("%q is kept as %q, want %q", tt.text, got, tt.want)
		}
	}
}

// A secret that begins before a line's end and ends behind it does not show its
// beginning, nor does one that is hidden by what cleaning removes.
func TestSecretsAreRedactedBeforeLinesAreCut(t *testing.T) {
	log := guestlog.New(guestlog.Options{Redact: hide})
	call := log.Call(head("a.wasm"), abi.Limits{LogLineBytes: 40})
	call.Write(abi.Info, strings.Repeat("-", 30)+"hunter2hunter2")
	if got := log.Tail("a.wasm", 1)[0].Text; strings.Contains(got, "hun") || len(got) > 40 {
		t.Errorf("kept: %q", got)
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	log := guestlog.New(guestlog.Options{Lines: 50, Modules: 4})
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 200 {
				module := fmt.Sprintf("m%d.wasm", (g+i)%6)
				call := log.Call(head(module), abi.Limits{LogLines: 2})
				for range 5 {
					call.Write(abi.Info, "line")
				}
				call.Close()
				if n := len(log.Tail(module, 1000)); n > 50 {
					t.Errorf("%d lines", n)
				}
				if i%50 == 0 {
					log.Forget(module)
				}
			}
		})
	}
	group.Wait()
}
