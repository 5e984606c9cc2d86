package access

import (
	"net/http"
	"slices"
	"strings"
)

// What a page of an allowed origin may send and read besides what every page may (Fetch,
// 3.2). Tokens are no credentials as it means the word: a page sends them itself.
const (
	corsMethods = "GET, HEAD, POST, PATCH, DELETE, OPTIONS"
	corsHeaders = "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id"
	corsExposed = "ETag, Mcp-Protocol-Version, Mcp-Session-Id, Retry-After, WWW-Authenticate, X-Request-Id"
	corsMaxAge  = "600" // seconds
	// paramHeaders begin the names of those that a tool's schema names.
	paramHeaders = "mcp-param-"
	// maxAsked is how much of what a page asks to send is looked at, in bytes.
	maxAsked = 4096
)

// share tells a browser that a page of this origin may read the answer.
func share(w http.ResponseWriter, origin string) {
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Access-Control-Expose-Headers", corsExposed)
}

// isPreflight reports whether a browser asks what a page may do. It sends no token with
// that.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

func answerPreflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", strings.Join(append([]string{corsHeaders}, paramsIn(r.Header.Get("Access-Control-Request-Headers"))...), ", "))
	h.Set("Access-Control-Max-Age", corsMaxAge)
	w.WriteHeader(http.StatusNoContent)
}

// paramsIn returns which of the headers that are asked for stand for parameters.
func paramsIn(asked string) (params []string) {
	if len(asked) > maxAsked {
		return nil
	}
	for name := range strings.SplitSeq(asked, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if strings.HasPrefix(name, paramHeaders) && isToken68(name) && !slices.Contains(params, name) {
			params = append(params, name)
		}
	}
	return params
}
