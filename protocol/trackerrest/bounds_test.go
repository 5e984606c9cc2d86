package trackerrest_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerrest"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

// holding is a board on which files are kept when a test lets them.
type holding struct {
	tracker.Service
	let chan struct{}

	mu        sync.Mutex
	now, most int
}

func (h *holding) UploadFile(context.Context, tracker.UploadFile) (out tracker.AttachmentOut, err error) {
	h.count(1)
	<-h.let
	h.count(-1)
	return out, nil
}

func (h *holding) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += n
	h.most = max(h.most, h.now)
}

// A file is in memory several times while it is taken, so only some are at once. The others
// wait, and one whose sender leaves does not.
func TestFilesAreTakenAFewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &holding{let: make(chan struct{})}
		server, err := trackerrest.New(func(*http.Request) (tracker.Service, error) { return h, nil }, trackerrest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		send := func(ctx context.Context) {
			done.Go(func() {
				r := httptest.NewRequestWithContext(ctx, "POST", "/tasks/TE-1/files?filename=a", strings.NewReader("a"))
				r.Header.Set("Content-Type", "application/octet-stream")
				server.ServeHTTP(httptest.NewRecorder(), r)
			})
		}
		for range 10 {
			send(t.Context())
		}
		synctest.Wait()
		leaves, leave := context.WithCancel(t.Context())
		send(leaves)
		synctest.Wait()
		leave()
		synctest.Wait()
		if h.now != 4 {
			t.Errorf("%d files are taken at once", h.now)
		}
		close(h.let)
		done.Wait()
		if h.most != 4 {
			t.Errorf("%d files were taken at once", h.most)
		}
	})
}

// A body that does not come is not waited for, and one that came leaves the connection as it
// was.
func TestABodyComesInTime(t *testing.T) {
	ann := boardtest.NewSite(t).Ann
	server, err := trackerrest.New(func(*http.Request) (tracker.Service, error) { return ann, nil }, trackerrest.Options{BodyWithin: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(server)
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	ask := func(length int, body string) *http.Response {
		t.Helper()
		_, err := fmt.Fprintf(conn, "POST /projects HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, body)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	whole := `{"slug":"in-time"}`
	first := ask(len(whole), whole)
	if _, err := in.Discard(int(first.ContentLength)); err != nil || first.StatusCode != 201 {
		t.Fatalf("%s, %v", first.Status, err)
	}
	time.Sleep(200 * time.Millisecond) // longer than a body may take: the connection is still there
	late := ask(100, "{")
	var said [512]byte
	n, _ := late.Body.Read(said[:])
	if late.StatusCode != 400 || !strings.Contains(string(said[:n]), "did not come within 100ms") {
		t.Errorf("%s: %s", late.Status, said[:n])
	}
}
