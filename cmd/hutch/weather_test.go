package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/protocol/tool"
)

const (
	weatherHost = "api.tomorrow.io"
	weatherKey  = "wk-7d1f60c2b9e84a55"
)

// loopback is a network in which every name is this machine, and every port that of
// one server, which is believed to be the host it plays.
type loopback struct{ server *httptest.Server }

// LookupNetIP implements [fetch.Resolver].
func (loopback) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

func (l loopback) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, l.server.Listener.Addr().String())
}

// playing starts an HTTPS server that has a certificate for host and what is below it,
// and returns how to reach it there.
func playing(t *testing.T, host string, h http.HandlerFunc) (fetch.Options, *httptest.Server) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host, "*." + host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(raw)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	s.StartTLS()
	l := loopback{s}
	return fetch.Options{Resolver: l, Dial: l.dial, Roots: roots}, s
}

// The example of a tool with an API key works against its service as its README has
// it: with the key that the operator stored and the grant that is shown there. The
// service gives the key back in all that it says, and nobody gets it.
func TestWeatherExample(t *testing.T) {
	asked := atomic.Int64{}
	web, service := playing(t, weatherHost, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		key := r.Header.Get("Apikey")
		if key != weatherKey || r.URL.Query().Get("units") != "imperial" || r.Host != weatherHost || r.URL.Path != "/v4/weather/realtime" {
			http.Error(w, "no such key: "+key, http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"data":{"time":"2026-11-30T12:00:00Z","values":{"temperature":7.5,"humidity":81}},"location":{"name":"Lisbon for %s"}}`, key)
	})
	cfg, p := newTestConfig(t, nil)
	p.web = web
	st, err := openState(cfg.State)
	must(t, err)
	must(t, os.WriteFile(st.secrets(), []byte("weather_key="+weatherKey+"\n"), 0o600))
	lines := &transcript{}
	s := startServer(t, cfg, p, slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer s.end(t)
	defer service.Close()
	s.drop(t, "weather.wasm", exampleModule(t, filepath.Join(guestsFolder, "examples/weather")).body)
	m := s.awaitModule(t, "weather.wasm")
	if m.Status != tool.Held || !strings.Contains(m.Reason, "asks for http "+weatherHost+", secrets weather_key: ") {
		t.Fatalf("before anybody decided: %s: %s", m.Status, m.Reason)
	}
	policy := strings.Replace(readmePolicy(t, m.Digest), "units: metric", "units: imperial", 1)
	s.decide(t, policy)
	s.awaitListed(t, "weather_now", true)
	ask := map[string]any{"place": "Lisbon"}
	var got string
	until := func(words string) { // what was decided or stored counts a moment later
		t.Helper()
		got = s.awaitAnswer(t, "weather_now", ask, words)
	}
	got, err = s.call(t.Context(), "weather_now", ask)
	if err != nil || !strings.Contains(got, "(blocked_ip)") || asked.Load() > 0 {
		t.Fatalf("the service is not on a public address here: %s, %v", got, err)
	}
	s.decide(t, strings.Replace(policy, "{host: "+weatherHost+", methods", "{host: "+weatherHost+", allow_private: [127.0.0.1/32], methods", 1))
	until(`"temperature":7.5`)
	if !strings.Contains(got, `"place":"Lisbon for [redacted:weather_key]"`) {
		t.Errorf("granted: %s", got)
	}
	told := got + lines.String()
	must(t, os.WriteFile(st.secrets(), []byte("weather_key=wk-another-key-of-ours\n"), 0o600))
	until("the service does not take the key: the operator has to store another as weather_key")
	for _, key := range []string{weatherKey, "wk-another-key-of-ours"} {
		if told += got + lines.String(); strings.Contains(told, key) {
			t.Errorf("%s is told: %s", key, told)
		}
	}
}

// awaitAnswer repeats a call until its answer has these words.
func (s *served) awaitAnswer(t *testing.T, name string, args any, words string) string {
	t.Helper()
	deadline := time.After(patientFor)
	for tick := time.Tick(20 * time.Millisecond); ; {
		got, err := s.call(t.Context(), name, args)
		if err == nil && strings.Contains(got, words) {
			return got
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("%s never says %q: %s, %v", name, words, got, err)
		}
	}
}

// readmePolicy is the policy that the README of the example shows, for a file.
func readmePolicy(t *testing.T, digest string) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(guestsFolder, "examples/weather/README.md"))
	must(t, err)
	_, policy, ok := strings.Cut(string(readme), "```yaml\n")
	policy, _, end := strings.Cut(policy, "```")
	if !ok || !end || !strings.Contains(policy, "sha256:...") {
		t.Fatalf("the README shows no policy:\n%s", readme)
	}
	return strings.Replace(policy, "sha256:...", "sha256:"+digest, 1)
}
