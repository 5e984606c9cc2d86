package fetch

import (
	"net/http"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
)

const maxHeaderName = 64 // bytes

// requestHeaders are what a guest may set: what a client says about itself and the
// answer it wants, and what widely used services ask for. What frames or routes a
// request, speaks for a proxy, or names a second method or path is not here, since
// the rules would not have decided about it.
func requestHeaders() []string {
	return strings.Fields(`
		Accept Accept-Charset Accept-Encoding Accept-Language Authorization Cache-Control Content-Disposition
		Content-Encoding Content-Language Content-Md5 Content-Range Content-Type Cookie Date Depth Digest Dnt If-Match
		If-Modified-Since If-None-Match If-Range If-Unmodified-Since Origin Pragma Prefer Range Referer Traceparent
		Tracestate User-Agent
		Anthropic-* Api-Key Api-Version Apikey Apollo-Require-Preflight Client-Id Dd-Api-Key Dd-Application-Key
		Fastly-Key Idempotency-Key Job-Token Mcp-* Notion-Version Ocp-Apim-Subscription-Key Openai-* Private-Token
		Revision Signature Signature-Input Soapaction Square-Version Stripe-* Token Zotero-Api-Key Zotero-Api-Version
		X-Access-Token X-Amz-Content-Sha256 X-Amz-Date X-Amz-Security-Token X-Amz-Target X-Api-Key X-Api-Token
		X-Api-Version X-Apikey X-App-Id X-Atlassian-Token X-Auth-Email X-Auth-Key X-Auth-Token X-Client-Id
		X-Correlation-Id X-Csrf-Token X-Figma-Token X-Github-Api-Version X-Goog-Api-Key X-Goog-Fieldmask
		X-Goog-User-Project X-Idempotency-Key X-Ms-Date X-Ms-Version X-Rapidapi-Host X-Rapidapi-Key
		X-Redmine-Api-Key X-Request-Id X-Requested-With X-Shopify-Access-Token X-Subscription-Token X-Token
		X-User-Id X-Vault-Token X-Workspace-Id`)
}

// responseHeaders are what a guest may see of an answer: what the body is, how to
// go on, and which limits a service tells. Cookies and what is told of the servers
// behind a name are not here.
func responseHeaders() []string {
	return strings.Fields(`
		Accept-Patch Accept-Post Accept-Ranges Age Allow Cache-Control Content-Disposition Content-Encoding
		Content-Language Content-Length Content-Location Content-Range Content-Type Date Dav Deprecation Digest Etag
		Expires Last-Modified Link Location Mcp-* Memento-Datetime Pragma Preference-Applied Ratelimit Ratelimit-*
		Request-Id Retry-After Sunset Vary Warning Www-Authenticate
		Anthropic-* Openai-* Stripe-Version X-Github-* X-Has-More X-Next X-Next-Page X-Oauth-Scopes X-Page X-Per-Page
		X-Prev-Page X-Rate-Limit-* X-Ratelimit-* X-Request-Id X-Robots-Tag X-Total X-Total-Count X-Total-Pages`)
}

// keptAcrossOrigins are what goes on after a redirect to another origin: fields
// that nobody uses as a credential.
func keptAcrossOrigins(name string) bool {
	switch name {
	case "Accept", "Accept-Charset", "Accept-Language", "Cache-Control", "Content-Encoding", "Content-Language",
		"Content-Type", "Dnt", "Pragma", "Range", "User-Agent":
		return true
	}
	return false
}

// describesBody are what goes when a redirect turns a request into a GET.
func describesBody(name string) bool { return strings.HasPrefix(name, "Content-") }

// reserved reports whether a request's field is the host's business or a proxy's,
// whoever wants to set it. Underscores count as hyphens: some servers read them so.
func reserved(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	for _, prefix := range []string{"proxy-", "x-forwarded-", "sec-", "x-original-", "x-rewrite-", "http2-",
		"x-http-method", "x-method", "x-envoy-", "cf-", "x-aws-ec2-metadata-", "x-middleware-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive", "expect",
		"via", "forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "client-ip", "x-host",
		"early-data", "metadata", "metadata-flavor", "x-google-metadata-request":
		return true
	}
	return false
}

// setsCookies reports whether an answer's field is never shown.
func setsCookies(name string) bool { return strings.HasPrefix(name, "Set-Cookie") }

// headerList knows names, and beginnings of names, in canonical form.
type headerList struct {
	names    map[string]bool
	prefixes []string
	except   func(name string) bool
}

func newHeaderList(except func(string) bool, list, more []string) headerList {
	l := headerList{names: map[string]bool{}, except: except}
	for _, entry := range slices.Concat(list, more) {
		if prefix, ok := strings.CutSuffix(entry, "*"); ok {
			l.prefixes = append(l.prefixes, http.CanonicalHeaderKey(prefix))
		} else if name := http.CanonicalHeaderKey(entry); !except(name) {
			l.names[name] = true
		}
	}
	return l
}

func (l headerList) has(name string) bool {
	if l.names[name] {
		return true
	}
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.ContainsFunc(l.prefixes, begins) && !l.except(name)
}

// guestHeader checks what a guest wants to send and returns a copy by canonical name.
func (c *Client) guestHeader(in map[string][]string) (http.Header, *Refused) {
	lines, refused := c.measureHeader(in, "the request has")
	if refused != nil {
		return nil, refused
	}
	out := make(http.Header, len(in)+4) // room for what is added for the guest
	values := make([]string, 0, lines)  // of all fields
	for _, name := range sortedNames(in) {
		if !isToken(name) {
			return nil, invalid("header %s: a name is up to %d letters, digits and hyphens", shown(name), maxHeaderName)
		}
		key := http.CanonicalHeaderKey(name)
		if !c.request.has(key) {
			return nil, deny("header %s: not one of those that a tool may set: allowed are those that say what is sent and wanted, such as Accept, Content-Type or If-Match, and those of well-known services, such as X-Api-Key or X-Request-Id; a secret may go into others, by a rule of its grant: leave it out", key)
		}
		if slices.ContainsFunc(in[name], isNotPlain) {
			return nil, invalid("header %s: its value has something else than printable ASCII and tabs", key)
		}
		if begin := len(values); out[key] == nil {
			values = append(values, in[name]...)
			out[key] = values[begin:len(values):len(values)]
		} else {
			out[key] = append(out[key], in[name]...)
		}
	}
	return out, nil
}

// sortedNames makes what is refused, and how fields under two spellings are joined,
// the same each time.
func sortedNames(h map[string][]string) []string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// measureHeader holds a header to the limits that count for both directions.
func (c *Client) measureHeader(h map[string][]string, who string) (int, *Refused) {
	lines, size := headerSize(h)
	if lines > c.o.MaxHeaders {
		return 0, overLimit("%s %d header lines: at most %d are allowed", who, lines, c.o.MaxHeaders)
	}
	if size > c.o.MaxHeaderBytes {
		return 0, overLimit("%s %d bytes of header lines: at most %d are allowed", who, size, c.o.MaxHeaderBytes)
	}
	return lines, nil
}

// headerSize counts lines, and bytes as HTTP/1.1 writes them.
func headerSize(h map[string][]string) (lines int, size int64) {
	for name, values := range h {
		lines += len(values)
		for _, value := range values {
			size += int64(len(name) + len(": ") + len(value) + len("\r\n"))
		}
	}
	return lines, size
}

// checkInjected checks what was added for one hop: anything but what nobody may set.
func (c *Client) checkInjected(h http.Header) *Refused {
	for name, values := range h {
		if !c.request.has(name) && (!isToken(name) || reserved(name)) {
			return deny("header %s: cannot be set by a grant", shown(name))
		}
		if slices.ContainsFunc(values, isNotPlain) {
			return invalid("header %s: what was to be put there has something else than printable ASCII and tabs", name)
		}
	}
	return nil
}

// visible returns what a guest may see of an answer's header, which it takes over.
func (c *Client) visible(h http.Header) (map[string][]string, *Refused) {
	for name, values := range h {
		if !c.response.has(name) {
			delete(h, name)
			continue
		}
		for i, value := range values {
			if isNotPlain(value) || strings.Contains(value, "\t") {
				values[i] = abi.OneLine(value, int(c.o.MaxHeaderBytes))
			}
		}
	}
	_, refused := c.measureHeader(h, "the answer has")
	return h, refused
}

func isToken(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return name != "" && len(name) <= maxHeaderName && strings.Trim(name, letters+"!#$%&'*+-.^_`|~") == ""
}

func isNotPlain(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') })
}
