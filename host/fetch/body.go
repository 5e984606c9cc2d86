package fetch

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Answers are decompressed here and not by the transport, which would hide how
// much was received: a stream of empty blocks is endless and decompresses to
// nothing.

const (
	// firstRead is what is set aside for a body before any of it is there, and
	// maxBelieved the most of the rest; beyond that it is doubled as it comes.
	firstRead   = 64 << 10
	maxBelieved = 8 << 20
	// maxDrained is what is read of a body that nobody wants, to keep its connection.
	maxDrained = 2 << 10
)

// acceptEncoding is what a hop asks for. A part of a compressed body, or the length
// of one, would be of no use to a guest.
func acceptEncoding(h *hop) string {
	if h.method == "HEAD" || h.header.Get("Range") != "" {
		return "identity"
	}
	return "gzip"
}

// readBody reads a body within the limit, both as it was sent and decoded.
func (x *exchange) readBody(h *hop, answer *http.Response) (content []byte, decoded bool, err error) {
	if h.method == "HEAD" {
		return nil, false, nil
	}
	most := cmp.Or(h.rule.MaxResponse, x.c.o.MaxResponse)
	if answer.ContentLength > most {
		return nil, false, tooLarge(most)
	}
	raw := &bounded{r: answer.Body, left: most, most: most}
	defer func() { x.got.Received += most - max(raw.left, 0) }()
	if encodings := answer.Header.Values("Content-Encoding"); len(encodings) > 1 || !isGzip(answer.Header.Get("Content-Encoding")) {
		content, err = readAll(raw, answer.ContentLength)
		if err == nil && len(content) > 0 && slices.ContainsFunc(encodings, isEncoded) {
			return nil, false, &Refused{Code: abi.Unavailable, Text: "host " + shown(h.url.Host) + ": its answer has a content coding that nobody asked for"}
		}
		return content, false, err
	}
	content, err = x.c.gunzip(raw, most)
	return content, true, err
}

func tooLarge(most int64) *Refused {
	return overLimit("the answer has a body of more than %d bytes, which is all that is allowed (max_response)", most)
}

// bounded fails as soon as there is one byte more than most.
type bounded struct {
	r          io.Reader
	left, most int64
}

// Read reads from r.
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, tooLarge(b.most)
	}
	return n, err
}

// readAll believes in an announced length only as far as firstRead, and in the rest
// once that much is there.
func readAll(r io.Reader, announced int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(max(announced, 0)+bytes.MinRead, firstRead+bytes.MinRead)))
	if _, err := b.ReadFrom(io.LimitReader(r, firstRead)); err != nil || b.Len() < firstRead {
		return b.Bytes(), err
	}
	if more := announced - firstRead; more > 0 {
		b.Grow(int(min(more, maxBelieved) + bytes.MinRead))
	}
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

func isGzip(encoding string) bool {
	encoding = strings.ToLower(strings.TrimSpace(encoding))
	return encoding == "gzip" || encoding == "x-gzip"
}

// isEncoded reports whether a body is not what it will be read as, but for gzip. What is
// in it could not be looked through.
func isEncoded(encoding string) bool {
	encoding = strings.ToLower(strings.TrimSpace(encoding))
	return encoding != "" && encoding != "identity"
}

// gunzip decodes a body. One that is empty stays so: servers announce encodings
// of nothing.
func (c *Client) gunzip(raw *bounded, most int64) ([]byte, error) {
	z, ok := c.gzips.Get().(*gzip.Reader)
	if !ok {
		z = new(gzip.Reader)
	}
	defer c.gzips.Put(z)
	if err := z.Reset(raw); errors.Is(err, io.EOF) && raw.left == most {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return readAll(&bounded{r: z, left: most, most: most}, -1)
}

// discard ends an answer. A short body is read so that the connection can be used
// again; a long one costs the connection, and so does a switch of protocols, whose
// body is the connection itself and does not end with the context.
func discard(answer *http.Response) {
	if answer.StatusCode >= http.StatusOK && 0 <= answer.ContentLength && answer.ContentLength <= maxDrained {
		_, _ = io.CopyN(io.Discard, answer.Body, maxDrained) // what is lost is a connection
	}
	_ = answer.Body.Close() // nothing was written, so nothing can be lost
}
