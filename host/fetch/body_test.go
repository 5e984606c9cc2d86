package fetch_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/protocol/abi"
)

func zipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestMaxResponse(t *testing.T) {
	const most = 1000
	for name, send := range map[string]func(w http.ResponseWriter, n int){
		"announced": func(w http.ResponseWriter, n int) {
			w.Header().Set("Content-Length", strconv.Itoa(n))
			_, _ = w.Write(make([]byte, n))
		},
		"chunked": func(w http.ResponseWriter, n int) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(make([]byte, n))
		},
		"gzip": func(w http.ResponseWriter, n int) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped(t, make([]byte, n)))
		},
	} {
		n := 0
		handler := func(w http.ResponseWriter, _ *http.Request) { send(w, n) }
		plain := server(t, handler)
		secure, roots := tlsServer(t, handler)
		c := newClient(t, fetch.Options{Roots: roots})
		for _, target := range []string{plain.URL, secure.URL} {
			rule := loopback(t, target)
			rule.MaxResponse = most
			for _, n = range []int{0, most, most + 1} {
				got, err := c.Do(t.Context(), "m", granted{rule}, nil, get(target))
				if n > most {
					refusal(t, err, abi.Limit, "the answer has a body of more than 1000 bytes")
				} else if err != nil || len(got.Body) != n {
					t.Errorf("%s, %s, %d: %v, %d bytes", name, target, n, err, len(got.Body))
				}
			}
		}
		if n = 500; name != "gzip" {
			c := newClient(t, fetch.Options{MaxResponse: 499})
			_, err := c.Do(t.Context(), "m", granted{loopback(t, plain.URL)}, nil, get(plain.URL))
			refusal(t, err, abi.Limit, "more than 499 bytes")
		}
	}
}

// 16 MiB of zeroes in 16 KiB stop at the limit, and cost little more than it.
func TestGzipBomb(t *testing.T) {
	bomb := zipped(t, make([]byte, 16<<20))
	s := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb)
	})
	c := newClient(t, fetch.Options{})
	rule := loopback(t, s.URL)
	rule.MaxResponse = 256 << 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := c.Do(t.Context(), "m", granted{rule}, nil, get(s.URL))
	runtime.ReadMemStats(&after)
	refusal(t, err, abi.Limit, "more than 262144 bytes")
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 4<<20 {
		t.Errorf("%d bytes were allocated for a limit of 256 KiB", spent)
	}
	if got.Body != nil || got.Received > 100<<10 {
		t.Errorf("%d bytes of body, %d received", len(got.Body), got.Received)
	}
}

// A stream of empty blocks decompresses to nothing and has no end; what was
// received is limited as well.
func TestGzipOfNothingForEver(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, err := w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff})
		for block := bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 10_000); err == nil; {
			_, err = w.Write(block)
		}
	})
	c := newClient(t, fetch.Options{MaxResponse: 1 << 20})
	got, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, nil, get(s.URL))
	refusal(t, err, abi.Limit, "more than 1048576 bytes")
	if got.Received < 1<<20 || got.Received > 1<<20+1000 {
		t.Errorf("received %d", got.Received)
	}
}

func TestEndlessBody(t *testing.T) {
	handler := func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for block := make([]byte, 32<<10); err == nil; {
			_, err = w.Write(block)
		}
	}
	plain := server(t, handler)
	secure, roots := tlsServer(t, handler)
	c := newClient(t, fetch.Options{Roots: roots})
	for _, target := range []string{plain.URL, secure.URL} {
		_, err := c.Do(t.Context(), "m", granted{loopback(t, target)}, nil, get(target))
		refusal(t, err, abi.Limit, "more than 8388608 bytes")
	}
}

// An announced length is believed only as far as bytes arrive.
func TestAnnouncedLengthIsNotAllocated(t *testing.T) {
	w := newWire(t, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\nx")
	c := newClient(t, fetch.Options{MaxResponse: 1 << 40})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := c.Do(t.Context(), "m", granted{loopback(t, w.url)}, nil, get(w.url))
	runtime.ReadMemStats(&after)
	refusal(t, err, abi.Unavailable, "ended the connection before its answer was complete")
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 4<<20 {
		t.Errorf("%d bytes were allocated for one", spent)
	}
}

func TestContentEncodings(t *testing.T) {
	text := []byte("hello, hello")
	z := zipped(t, text)
	broken := slices.Clone(z)
	broken[len(broken)-5]++ // in the checksum
	for _, tt := range []struct {
		encoding, text string
		body, want     []byte
		left           bool // the guest sees the encoding
	}{
		{"gzip", "", z, text, false},
		{" GZIP ", "", z, text, false},
		{"x-gzip", "", z, text, false},
		{"gzip", "", slices.Concat(z, z), slices.Concat(text, text), false},
		{"gzip", "", nil, nil, false},
		{"br", "a content coding that nobody asked for", z, nil, false},
		{"br", "", nil, nil, true},
		{"deflate", "a content coding that nobody asked for", z, nil, false},
		{"gzip, gzip", "a content coding that nobody asked for", z, nil, false},
		{"identity", "", text, text, true},
		{"", "", z, z, false},
		{"gzip", "no valid gzip", text, nil, false},
		{"gzip", "no valid gzip", broken, nil, false},
		{"gzip", "ended the connection", z[:5], nil, false},
		{"gzip", "ended the connection", z[:len(z)-9], nil, false},
		{"gzip", "no valid gzip", slices.Concat(z[:10], []byte{0xff, 0xff, 0xff}), nil, false},
	} {
		s := server(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" {
				t.Errorf("asked for %q", r.Header.Get("Accept-Encoding"))
			}
			w.Header()["Content-Encoding"] = []string{tt.encoding}
			w.Header().Set("Content-Length", strconv.Itoa(len(tt.body)))
			_, _ = w.Write(tt.body)
		})
		c := newClient(t, fetch.Options{})
		got, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, nil,
			fetch.Request{URL: s.URL, Header: map[string][]string{"Accept-Encoding": {"deflate, br"}}})
		if tt.text != "" {
			refusal(t, err, abi.Unavailable, tt.text)
			continue
		}
		if err != nil || !bytes.Equal(got.Body, tt.want) {
			t.Errorf("%q: %v, %q", tt.encoding, err, got.Body)
		}
		if seen := len(got.Header["Content-Encoding"]) > 0 && got.Header["Content-Encoding"][0] != ""; seen != tt.left {
			t.Errorf("%q: the guest sees %q", tt.encoding, got.Header["Content-Encoding"])
		}
		if !isGzipped(tt.encoding) != (len(got.Header["Content-Length"]) == 1) {
			t.Errorf("%q: length %q", tt.encoding, got.Header["Content-Length"])
		}
	}
}

func isGzipped(encoding string) bool {
	return slices.Contains([]string{"gzip", "x-gzip"}, strings.ToLower(strings.TrimSpace(encoding)))
}

// A part of a file and the length of a file are those of the file itself.
func TestPartsAndHeadsAreNotCompressed(t *testing.T) {
	var asked string
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", "1000000000000")
		w.WriteHeader(http.StatusOK)
	})
	c := newClient(t, fetch.Options{})
	got, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, nil, fetch.Request{Method: "HEAD", URL: s.URL})
	if err != nil || asked != "identity" || got.Header["Content-Length"][0] != "1000000000000" {
		t.Errorf("%v, asked for %q, %v", err, asked, got.Header)
	}
	_, err = c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, nil,
		fetch.Request{URL: s.URL, Header: map[string][]string{"Range": {"bytes=0-1"}}})
	if refusal(t, err, abi.Limit, "max_response"); asked != "identity" {
		t.Errorf("asked for %q", asked)
	}
}

// slowServer answers on one end of a pipe: after the request it sends begin and,
// every second until the pipe is closed, drip. Without a drip it ends.
func slowServer(begin, drip string) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = ours.Close() }()
			if _, err := http.ReadRequest(bufio.NewReader(ours)); err != nil {
				return
			}
			gone := make(chan struct{})
			go func() { _, _ = io.Copy(io.Discard, ours); close(gone) }()
			_, err := io.WriteString(ours, begin)
			for drip != "" && err == nil {
				select {
				case <-time.After(time.Second):
					_, err = io.WriteString(ours, drip)
				case <-gone:
					return
				}
			}
		}()
		return theirs, nil
	}
}

// However slowly a server sends, the answer has one time limit. Time is simulated.
func TestTimeout(t *testing.T) {
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"slow body":             slowServer("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "x"),
		"slow chunks":           slowServer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
		"slow headers":          slowServer("HTTP/1.1 200 OK\r\n", "Age: 1\r\n"),
		"slow status":           slowServer("", "H"),
		"no end of early hints": slowServer("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
		"slow redirect":         slowServer("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 1000\r\n\r\n", "x"),
	} {
		for limit, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 7 * time.Second: 7 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				c := fetch.New(fetch.Options{Timeout: limit, Dial: dial, Resolver: resolves("93.184.215.14", "slow.test")})
				defer c.Close()
				start := time.Now()
				_, err := c.Do(t.Context(), "m", granted{{Scheme: "http", Host: "slow.test"}}, nil, get("http://slow.test/"))
				if name == "no end of early hints" && codeOf(err) == abi.Unavailable && time.Since(start) < want {
					return // the transport counts them
				}
				refusal(t, err, abi.Unavailable, "no complete answer within "+want.String())
				if took := time.Since(start); took != want {
					t.Errorf("%s: ended after %s, want %s", name, took, want)
				}
			})
		}
	}
}

// Connecting has a limit of its own; resolving counts.
func TestConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		c := fetch.New(fetch.Options{Dial: hang, Resolver: resolves("93.184.215.14", "slow.test")})
		defer c.Close()
		start := time.Now()
		_, err := c.Do(t.Context(), "m", granted{{Scheme: "http", Host: "slow.test"}}, nil, get("http://slow.test/"))
		refusal(t, err, abi.Unavailable, "does not answer in time")
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("ended after %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		mute := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, ours) }()
			return theirs, nil
		}
		c := fetch.New(fetch.Options{Dial: mute, Resolver: resolves("93.184.215.14", "slow.test"), ConnectTimeout: 3 * time.Second})
		defer c.Close()
		start := time.Now()
		_, err := c.Do(t.Context(), "m", granted{{Host: "slow.test"}}, nil, get("https://slow.test/"))
		refusal(t, err, abi.Unavailable, "does not answer in time")
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("the handshake ended after %s", took)
		}
	})
}

// An address that hangs does not hold up the next one for long, and one that
// fails not at all; families take turns; no more than eight are tried.
func TestAddressesAreTriedInTurn(t *testing.T) {
	many := []string{"2600::1", "2600::2", "2600::3", "2600::4", "2600::5", "2600::6", "2600::7", "2600::8", "8.8.8.1", "8.8.8.2"}
	inTurn := []string{"[2600::1]:80", "8.8.8.1:80", "[2600::2]:80", "8.8.8.2:80", "[2600::3]:80", "[2600::4]:80", "[2600::5]:80", "[2600::6]:80"}
	for _, tt := range []struct {
		good  string // address that answers
		hang  bool   // the others hang instead of failing
		after time.Duration
		tried int
	}{
		{"8.8.8.2:80", false, 0, 4},
		{"8.8.8.2:80", true, 750 * time.Millisecond, 4},
		{"[2600::1]:80", true, 0, 1},
		{"", false, 0, 8},
		{"", true, 10 * time.Second, 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &dials{}
			closed := make(chan struct{}, 10)
			dial := func(ctx context.Context, network, address string) (net.Conn, error) {
				_, err := d.dial(ctx, network, address)
				if address == tt.good {
					return slowServer(emptyAnswer, "")(ctx, "", "")
				}
				if !tt.hang {
					return nil, err
				}
				<-ctx.Done()
				closed <- struct{}{}
				return nil, ctx.Err()
			}
			c := fetch.New(fetch.Options{Dial: dial, Resolver: &names{known: map[string][][]string{"many.test.": {many}}}})
			defer c.Close()
			start := time.Now()
			got, err := c.Do(t.Context(), "m", granted{anyPublic()}, nil, get("http://many.test/"))
			if tt.good != "" && (err != nil || got.Addr.String() != strings.Trim(strings.TrimSuffix(tt.good, ":80"), "[]")) {
				t.Errorf("%v, at %s", err, got.Addr)
			} else if tt.good == "" {
				refusal(t, err, abi.Unavailable, "")
			}
			if took := time.Since(start); took != tt.after || !slices.Equal(d.addresses(), inTurn[:tt.tried]) {
				t.Errorf("%+v: after %s, tried %v", tt, took, d.addresses())
			}
			synctest.Wait()
			if want := tt.tried - 1; tt.hang && tt.good != "" && len(closed) != want {
				t.Errorf("%d of %d other attempts were ended", len(closed), want)
			}
		})
	}
}

// A connection that comes when another address has answered already is closed.
func TestLateConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		ours, theirs := net.Pipe()
		dial := func(ctx context.Context, _, address string) (net.Conn, error) {
			if address == "[2600::1]:80" {
				<-late // whatever becomes of ctx
				return ours, nil
			}
			return slowServer(emptyAnswer, "")(ctx, "", "")
		}
		c := fetch.New(fetch.Options{Dial: dial, Resolver: &names{known: map[string][][]string{"two.test.": {{"2600::1", "8.8.8.8"}}}}})
		defer c.Close()
		if _, err := c.Do(t.Context(), "m", granted{anyPublic()}, nil, get("http://two.test/")); err != nil {
			t.Fatal(err)
		}
		close(late)
		synctest.Wait()
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the late connection is open: %v", err)
		}
	})
}

// A dialer that panics is a failed attempt, not the end of the process.
func TestDialThatPanics(t *testing.T) {
	c := newClient(t, fetch.Options{Resolver: resolves("8.8.8.8", "some.test"),
		Dial: func(context.Context, string, string) (net.Conn, error) { panic("oops") }})
	_, err := c.Do(t.Context(), "m", granted{{Scheme: "http", Host: "some.test"}}, nil, get("http://some.test/"))
	if r := refusal(t, err, abi.Unavailable, ""); strings.Contains(r.Text, "oops") {
		t.Errorf("the guest reads %q", r.Text)
	}
}
