package abi

// HTTPRequest is the body of http_request; the result is an [HTTPResponse]. The
// host follows redirects, each decided like a request of its own, and adds what an
// operator granted: a guest never sees a secret.
//
// Refusals: denied for what was not requested or not granted; invalid for a request
// that is wrong; limit for sizes, rates and redirects; unavailable for a server that
// cannot be reached or does not answer; cancelled. An answer with an error status is
// no refusal.
type HTTPRequest struct {
	// Method is GET if it is empty.
	Method string `json:"method,omitempty"`
	// URL is absolute: https, or http where that is granted.
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is text. Bytes that are no UTF-8 are in BodyBase64 instead, in standard
	// base64.
	Body       string `json:"body,omitempty"`
	BodyBase64 []byte `json:"bodyBase64,omitempty"`
}

// HTTPResponse is what http_request got. Writers leave out escapes for HTML: a page
// would be twice its size.
type HTTPResponse struct {
	Status int `json:"status"`
	// URL is what answered, after redirects.
	URL string `json:"url,omitempty"`
	// Headers are those that a guest may see, by name, each with its values in
	// order.
	Headers map[string][]string `json:"headers,omitempty"`
	// Body and BodyBase64 are as in [HTTPRequest], decompressed.
	Body       string `json:"body,omitempty"`
	BodyBase64 []byte `json:"bodyBase64,omitempty"`
}
