package tracker

import "net/http"

// SniffType is the MIME type that content looks like, whoever says what of it.
func SniffType(content []byte) string { return http.DetectContentType(content) }
