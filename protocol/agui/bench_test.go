package agui

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hutch-run/hutch/protocol/event"
)

// dial sends a request over a connection of its own and reads until a line has want.
func dial(b *testing.B, server *httptest.Server, request, want string) net.Conn {
	b.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.WriteString(conn, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		b.Fatal(err)
	}
	for r := bufio.NewReaderSize(conn, 64); ; {
		text, err := r.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		if strings.Contains(text, want) {
			return conn
		}
	}
}

// BenchmarkTurn is one text turn over a loopback connection that stays open: from the
// request to the end of the body.
func BenchmarkTurn(b *testing.B) {
	server := httptest.NewServer(New((&fake{left: new(atomic.Int32)}).open, Options{}))
	defer server.Close()
	const in = `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"hello"}]}`
	client := server.Client()
	b.ReportAllocs()
	for b.Loop() {
		resp, err := client.Post(server.URL+"/agui", "application/json", strings.NewReader(in))
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(text), string(event.TypeRunFinished)) || resp.Body.Close() != nil {
			b.Fatalf("%v %s", err, text)
		}
	}
}

// BenchmarkIdleStream is the memory of a stream on which nothing happens, beyond that
// of a bare server of SSE, in bytes. Its operations mean nothing.
func BenchmarkIdleStream(b *testing.B) {
	const streams = 500
	ours := New((&fake{left: new(atomic.Int32)}).open, Options{})
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {}\n\n")
		if err := http.NewResponseController(w).Flush(); err == nil {
			<-r.Context().Done()
		}
	})
	for b.Loop() {
		one := idle(b, ours, streams, sent(waits))
		other := idle(b, bare, streams, "GET / HTTP/1.1\nHost: x\n\n")
		b.ReportMetric(one, "B/stream")
		b.ReportMetric(other, "B/bare")
		b.ReportMetric(one-other, "B/more")
	}
}

// idle returns how much memory each of n streams takes.
func idle(b *testing.B, handler http.Handler, n int, request string) float64 {
	server := httptest.NewServer(handler)
	defer server.Close()
	before := inUse()
	var conns []net.Conn
	for range n {
		conns = append(conns, dial(b, server, request, "data:"))
	}
	after := inUse()
	for _, c := range conns {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	}
	return (after - before) / float64(n)
}

func inUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}
