package worker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
)

func TestFrameRoundTrip(t *testing.T) {
	for _, size := range []int{0, 1, firstChunk - 1, firstChunk, firstChunk + 1, 3 << 20} {
		tail := bytes.Repeat([]byte("x"), size)
		var wire bytes.Buffer
		w := newFrameWriter(&wire)
		for id := range uint64(2) {
			if err := w.write(frame{kind: kindDone, id: id, head: []byte("head"), tail: tail}); err != nil {
				t.Fatal(err)
			}
		}
		for id := range uint64(2) {
			h, err := readHeader(&wire)
			if err != nil || h.kind != kindDone || h.id != id {
				t.Fatalf("header %+v, %v", h, err)
			}
			body, err := readBody(&wire, h, size+4)
			if err != nil || !bytes.Equal(body, append([]byte("head"), tail...)) {
				t.Fatalf("body of %d bytes, %v, want head and %d", len(body), err, size)
			}
		}
		if _, err := readHeader(&wire); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last frame: %v, want EOF", err)
		}
	}
}

func TestFrameOverItsLimit(t *testing.T) {
	h := header{size: 11, kind: kindLog}
	if _, err := readBody(strings.NewReader("01234567890"), h, 10); err == nil || err.Error() != "log frame of 11 bytes, at most 10" {
		t.Errorf("got %v", err)
	}
	h.size = 10
	if _, err := readBody(strings.NewReader("0123456789"), h, 10); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := readBody(strings.NewReader(""), header{kind: 200}, -1); err == nil || !strings.HasPrefix(err.Error(), "kind 200") {
		t.Errorf("kind that nobody sends: %v", err)
	}
}

// A claimed length costs nothing before its bytes arrive.
func TestE09_NoAllocationByClaim(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readBody(strings.NewReader("short"), header{size: maxModule, kind: kindLoad}, maxModule)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want an unexpected end", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes allocated for a claim of %d", grown, maxModule)
	}
}

func TestHead(t *testing.T) {
	head, err := encodeHead(callHead{Tool: "t"})
	if err != nil {
		t.Fatal(err)
	}
	var got callHead
	tail, err := decodeHead(append(head, "tail"...), &got)
	if err != nil || got.Tool != "t" || string(tail) != "tail" {
		t.Errorf("got %+v, %q, %v", got, tail, err)
	}
	for _, wrong := range []string{"", "\x00\x00\x00", "\x00\x00\x00\x05{}", "\xff\xff\xff\xff{}", "\x00\x00\x00\x02{]"} {
		if _, err := decodeHead([]byte(wrong), &got); err == nil {
			t.Errorf("head %q: no error", wrong)
		}
	}
}

func TestFailureCrossesTheWallClean(t *testing.T) {
	for _, test := range []struct{ class, text, wantClass, wantText string }{
		{"guest", "two\nlines\x1b[31m \xff", "guest", "two lines\uFFFD[31m \uFFFD"},
		{"internal", "panic: /home/someone", "internal", "the worker failed; hutch's log has details"},
		{"trap", strings.Repeat("\u00e9", maxFailureText), "trap", strings.Repeat("\u00e9", maxFailureText/2-2) + "…"},
	} {
		body, err := encodeFailed(&abi.Failure{Class: abi.Class(test.class), Text: test.text}, abi.Usage{})
		if err != nil || len(body) > maxFailed {
			t.Fatalf("%s: %d bytes, %v", test.class, len(body), err)
		}
		f, _, err := decodeFailed(body)
		if err != nil || string(f.Class) != test.wantClass || f.Text != test.wantText {
			t.Errorf("got %v, %v, want %s: %s", f, err, test.wantClass, test.wantText)
		}
	}
	for _, class := range []string{"worker_lost", "", "owner"} {
		if _, _, err := decodeFailed([]byte(`{"class":"` + class + `"}`)); err == nil {
			t.Errorf("class %q: no error", class)
		}
	}
}

func TestTailKeepsBothEnds(t *testing.T) {
	words := &tail{}
	for range 300 {
		if _, err := io.WriteString(words, "fatal error: first\n"+strings.Repeat(".", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(words, "the last"); err != nil {
		t.Fatal(err)
	}
	got := words.String()
	if len(got) > keepFirst+keepLast+10 || !strings.HasPrefix(got, "fatal error: first") || !strings.HasSuffix(got, "the last") {
		t.Errorf("%d bytes: %.30q ... %q", len(got), got, got[len(got)-30:])
	}
}

// rawFrame is a frame as a stranger might write it.
func rawFrame(k kind, id uint64, claim int, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(claim))
	b = append(b, byte(k))
	return append(binary.BigEndian.AppendUint64(b, id), body...)
}

func goodFrame(k kind, id uint64, body string) []byte { return rawFrame(k, id, len(body), body) }

// A head that was decoded before gives what it did, and another one what it says.
func TestCallHeads(t *testing.T) {
	encode := func(h callHead) []byte {
		b, err := encodeHead(h)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var heads callHeads
	small, long := callHead{Tool: "a", Limits: abi.Limits{Fuel: 7}}, callHead{Tool: strings.Repeat("x", mostKept)}
	secret := callHead{Tool: "a", Config: map[string]string{"key": "k"}}
	for i, h := range []callHead{small, small, {Tool: "b", Host: true}, {Tool: "b"}, small, secret, secret, long, long, small} {
		tail := fmt.Sprintf(`{"i":%d}`, i)
		got, rest, err := heads.decode(append(encode(h), tail...))
		if err != nil || !reflect.DeepEqual(got, h) || string(rest) != tail {
			t.Errorf("%d: %+v, %q, %v", i, got, rest, err)
		}
		if kept := len(h.Config) == 0 && len(h.Tool) < mostKept; (string(heads.text) == string(encode(h)[4:])) != kept {
			t.Errorf("%d: kept is %.80q", i, heads.text)
		}
	}
	for _, bad := range []string{"", "\x00\x00\x00\x00", "\x00\x00\x00\x01x", "\xff\xff\xff\xff"} {
		if _, _, err := heads.decode([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
