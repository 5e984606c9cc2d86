package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"
)

// serverName is how /healthz says that it is ours.
const serverName = "hutch"

// hutchServes returns where a hutch listens at addr, over TLS or without; ok is false if
// none does.
func hutchServes(ctx context.Context, addr string) (url string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	// No proxy and no redirects: whoever else listens there is not to be trusted. Nor is
	// the certificate looked at: nothing is sent, and who answers is not believed more
	// than without TLS.
	peer := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	for _, secure := range []bool{false, true} {
		url := schemeOf(secure) + addr
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
		if err != nil {
			return "", false
		}
		resp, err := peer.RoundTrip(req)
		if err != nil {
			continue
		}
		_ = resp.Body.Close() // the header says enough
		if resp.StatusCode == http.StatusOK && resp.Header.Get("Server") == serverName {
			return url, true
		}
	}
	return "", false
}
