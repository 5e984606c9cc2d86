// Package llmtest plays a provider of models over HTTP, with the faults that real ones
// have, and holds what is true of every model of package llm.
package llmtest

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// A Server speaks the wire format of streaming chat completions. It gives its answers
// in order, one for each request; a request too many fails the test.
type Server struct {
	// URL is the base URL of the API.
	URL string
	// Key, if not empty, is the only key that is taken. Another one is refused as
	// providers do, in words that show it.
	Key string

	t       testing.TB
	pipes   *pipes               // nil over TCP
	choose  func(Request) Answer // nil: answers in order
	mu      sync.Mutex
	answers []Answer
	asked   []Request
}

// A Request is what a client sent.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// New returns a server in memory, which is reached through [Server.Transport] alone. It
// works in a bubble of testing/synctest. It ends with the test.
func New(t testing.TB, answers ...Answer) *Server {
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	s := &Server{URL: "http://provider.test/v1", t: t, pipes: p, answers: answers}
	s.serve(p)
	return s
}

// Listen returns a server on a port of the loopback interface, for clients in other
// processes. It ends with the test.
func Listen(t testing.TB, answers ...Answer) *Server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: "http://" + l.Addr().String() + "/v1", t: t, answers: answers}
	s.serve(l)
	return s
}

// Choose returns a server as [Listen] does, which asks for the answer to each request.
// Several may be asked for at once, and whoever is asked may take time: the client then
// waits for the status.
func Choose(t testing.TB, answer func(Request) Answer) *Server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: "http://" + l.Addr().String() + "/v1", t: t, choose: answer}
	s.serve(l)
	return s
}

func (s *Server) serve(l net.Listener) {
	server := &http.Server{Handler: http.HandlerFunc(s.handle), ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // ends with Close
	}()
	s.t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
}

// Transport returns a way to reach the server; its connections end with the test.
func (s *Server) Transport() *http.Transport {
	t := &http.Transport{DisableCompression: true}
	if s.pipes != nil {
		t.DialContext = s.pipes.dial
	}
	s.t.Cleanup(t.CloseIdleConnections)
	return t
}

// Add gives further answers.
func (s *Server) Add(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answers...)
}

// Requests returns what was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	asked := Request{r.Method, r.URL.Path, r.Header.Clone(), body}
	s.mu.Lock()
	s.asked = append(s.asked, asked)
	if s.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.Key {
		s.mu.Unlock()
		Refuse(http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: "+r.Header.Get("Authorization")).send(w, r)
		return
	}
	if s.choose != nil {
		s.mu.Unlock()
		s.choose(asked).send(w, r)
		return
	}
	if len(s.answers) == 0 {
		n := len(s.asked)
		s.mu.Unlock()
		s.t.Errorf("request %d: no answer is left", n)
		http.Error(w, "no answer is left", http.StatusInternalServerError)
		return
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	s.mu.Unlock()
	a.send(w, r)
}

// pipes is a listener whose connections are pairs of pipes: waiting on one does not
// keep a bubble's clock from moving.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept returns the next connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr names the listener.
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "provider.test" }
