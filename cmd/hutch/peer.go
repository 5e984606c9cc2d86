package main

import (
	"context"
	"net/http"
	"time"
)

// serverName is how /healthz says that it is ours.
const serverName = "hutch"

// hutchServes reports whether a hutch listens at addr.
func hutchServes(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		return false
	}
	// No proxy and no redirects: whoever else listens there is not to be trusted.
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // the header says enough
	return resp.StatusCode == http.StatusOK && resp.Header.Get("Server") == serverName
}
