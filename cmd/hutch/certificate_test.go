package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// newPair writes a certificate for localhost, and its key, and returns it.
func newPair(t *testing.T, files tlsFiles, serial int64) *x509.Certificate {
	t.Helper()
	return newPairUntil(t, files, serial, time.Now().AddDate(20, 0, 0))
}

func newPairUntil(t *testing.T, files tlsFiles, serial int64, end time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "hutch"}, NotBefore: time.Unix(0, 0), NotAfter: end,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t, os.WriteFile(files.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return cert
}

func newFiles(t *testing.T) tlsFiles {
	dir := t.TempDir()
	return tlsFiles{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
}

func TestServeOverTLS(t *testing.T) {
	files := newFiles(t)
	cert := newPair(t, files, 1)
	s := startServe(t, func(cfg *Config) { cfg.TLS = files })
	defer s.end(t)
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Error(s.url)
	}
	// Who wants to listen there too is told who does, and how it is reached.
	cfg := s.app.cfg
	cfg.Addr = strings.TrimPrefix(s.url, "https://")
	for _, f := range checkAddress(t.Context(), patient{cfg: cfg}) {
		if f.Status != verdictOK || f.Found != "hutch already serves there: "+s.url+"/mcp" {
			t.Errorf("%+v", f)
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	for most, ok := range map[uint16]bool{tls.VersionTLS13: true, tls.VersionTLS12: true, tls.VersionTLS11: false} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: most}}}
		resp, err := client.Get(s.url + "/healthz")
		if (err == nil) != ok {
			t.Errorf("TLS up to %x: %v", most, err)
		}
		if err == nil {
			must(t, resp.Body.Close())
		}
		client.CloseIdleConnections()
	}
	session := newTestClient(t, "2026-07-28", &sdk.StreamableClientTransport{
		Endpoint: s.url + "/mcp", MaxRetries: -1, HTTPClient: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}},
	})
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Error(err)
	}
	session.close(t)
	dialer := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: roots}}
	socket, resp, err := dialer.DialContext(t.Context(), socketURL(s.url), nil)
	must(t, err)
	must(t, errors.Join(resp.Body.Close(), socket.Close()))
	if got := s.app.cfg.servedBy(t.Context()); got != s.url+"/mcp" {
		t.Errorf("the owner says that it serves %s", got)
	}
}

// A certificate that changes is read again, and a bad one leaves the one before.
func TestCertificateIsReadAgain(t *testing.T) {
	files := newFiles(t)
	serial := func(c *certificate) int64 {
		t.Helper()
		got, err := c.get(nil)
		must(t, err)
		return got.Leaf.SerialNumber.Int64()
	}
	synctest.Test(t, func(t *testing.T) {
		newPair(t, files, 1)
		log := &transcript{}
		c, err := openCertificate(files, slog.New(slog.NewTextHandler(log, nil)))
		must(t, err)
		at := time.Now()
		change := func(write func()) {
			write()
			at = at.Add(time.Hour) // as a clock that is coarse may not
			must(t, os.Chtimes(files.Cert, at, at))
			time.Sleep(certificateEvery)
		}
		change(func() { newPair(t, files, 2) })
		if got := serial(c); got != 2 {
			t.Errorf("certificate %d", got)
		}
		change(func() { must(t, os.WriteFile(files.Cert, []byte("half"), 0o600)) })
		for range 3 {
			if got := serial(c); got != 2 {
				t.Errorf("certificate %d", got)
			}
			time.Sleep(certificateEvery)
		}
		if n := strings.Count(log.String(), "is no good"); n != 1 {
			t.Errorf("told %d times: %s", n, log)
		}
		change(func() { newPair(t, files, 3) })
		if got := serial(c); got != 3 {
			t.Errorf("certificate %d", got)
		}
		change(func() { must(t, os.Remove(files.Key)) })
		if got := serial(c); got != 3 {
			t.Errorf("certificate %d", got)
		}
	})
}

func TestCertificatesThatAreNoGood(t *testing.T) {
	for name, c := range map[string]struct {
		break_ func(t *testing.T, f tlsFiles)
		want   string
	}{
		"no certificate": {func(t *testing.T, f tlsFiles) { must(t, os.Remove(f.Cert)) }, "tls.cert \".*cert.pem\": no such file"},
		"no key":         {func(t *testing.T, f tlsFiles) { must(t, os.Remove(f.Key)) }, "tls.key \".*key.pem\": no such file"},
		"another key": {func(t *testing.T, f tlsFiles) {
			cert, err := os.ReadFile(f.Cert)
			must(t, err)
			newPair(t, f, 2)
			must(t, os.WriteFile(f.Cert, cert, 0o600))
		}, "private key does not match"},
		"a key that is none": {func(t *testing.T, f tlsFiles) { must(t, os.WriteFile(f.Key, []byte("bad\n"), 0o600)) }, "with tls.key \".*key.pem\": tls: failed to find any PEM data in key input"},
		"too large":          {func(t *testing.T, f tlsFiles) { must(t, os.Truncate(f.Key, maxPEM+1)) }, "more than 1048576 bytes"},
		"for everybody":      {func(t *testing.T, f tlsFiles) { must(t, os.Chmod(f.Key, 0o644)) }, "everybody can read it (mode 0644)"},
		"by everybody":       {func(t *testing.T, f tlsFiles) { must(t, os.Chmod(f.Cert, 0o666)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.HasSuffix(name, "everybody") {
				t.Skip("modes say nothing here")
			}
			f := newFiles(t)
			newPair(t, f, 1)
			c.break_(t, f)
			_, err := openCertificate(f, quiet)
			want := strings.NewReplacer(`".*cert.pem"`, quoted(f.Cert), `".*key.pem"`, quoted(f.Key)).Replace(c.want)
			if err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != exitUsage {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	f := newFiles(t)
	newPair(t, f, 1)
	must(t, os.Chmod(f.Key, fs.FileMode(0o640)))
	if _, err := openCertificate(f, quiet); err != nil {
		t.Errorf("a key that a group can read: %v", err)
	}
}

func TestDoctorLooksAtCertificates(t *testing.T) {
	f := newFiles(t)
	look := func(files tlsFiles) []finding { return checkCertificate(t.Context(), patient{cfg: Config{TLS: files}}) }
	if got := look(tlsFiles{}); got != nil {
		t.Errorf("%v", got)
	}
	for days, want := range map[int]verdict{400: verdictOK, 13: verdictWarn, -1: verdictWarn} {
		newPairUntil(t, f, 1, time.Now().AddDate(0, 0, days))
		if got := look(f); len(got) != 1 || got[0].Status != want {
			t.Errorf("%d days left: %v", days, got)
		}
	}
	must(t, os.Remove(f.Key))
	if got := look(f); len(got) != 1 || got[0].Status != verdictFail {
		t.Errorf("%v", got)
	}
}
