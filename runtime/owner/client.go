package owner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// A Client reaches the owner of a directory. It may be used from any goroutine.
type Client struct {
	// Owner is who announced the socket.
	Owner Info
	http  http.Client
}

// host stands in URLs for whoever owns the directory.
const host = "http://hutch"

// Dial returns a client of dir's owner. The error is [ErrGone] if none answers.
func Dial(ctx context.Context, dir string) (*Client, error) {
	info, err := Look(dir)
	if err != nil {
		return nil, err
	}
	c := &Client{Owner: info}
	c.http.Transport = &http.Transport{
		DisableKeepAlives: true, // a kept connection would be one to an owner of the past
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	return c, conn.Close()
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", c.Owner.Socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	return conn, nil
}

// Do sends a request to the path, which starts with a slash. The caller closes
// the answer's body.
func (c *Client) Do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, host+path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.http.Do(req)
}

// A Stream is a connection in both directions. What was written is not lost when
// the writing side is closed.
type Stream interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// upgradeTimeout bounds how long an owner may take to agree to a stream.
const upgradeTimeout = 10 * time.Second

// Upgrade turns a connection into a stream of the protocol, at path (RFC 9110,
// section 7.8). The error is [ErrGone] if the owner does not answer, or is about to
// end and says so with 503.
func (c *Client) Upgrade(ctx context.Context, path, protocol string) (_ Stream, err error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	stream, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a unix socket")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, host+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", protocol)
	late := time.Now().Add(upgradeTimeout)
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(late) {
		late = sooner
	}
	if err := conn.SetDeadline(late); err != nil {
		return nil, err
	}
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	switch resp.StatusCode {
	case http.StatusSwitchingProtocols:
	case http.StatusServiceUnavailable:
		return nil, fmt.Errorf("%w: %w", ErrGone, refused(resp))
	default:
		return nil, refused(resp)
	}
	return &upgraded{UnixConn: stream, r: r}, conn.SetDeadline(time.Time{})
}

// maxRefusal bounds how much of an owner's reason is repeated, in bytes.
const maxRefusal = 1 << 10

func refused(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	return errors.Join(fmt.Errorf("the owner of the state directory answered %s: %s", resp.Status, text), err, resp.Body.Close())
}

// upgraded reads what came behind the answer first.
type upgraded struct {
	*net.UnixConn
	r *bufio.Reader
}

// Read implements [io.Reader].
func (u *upgraded) Read(p []byte) (int, error) { return u.r.Read(p) }

// Accept is an owner's side of [Client.Upgrade]: it agrees to the protocol and
// returns the stream, which is the caller's to close, or answers why not.
func Accept(w http.ResponseWriter, r *http.Request, protocol string) (Stream, error) {
	if r.Header.Get("Upgrade") != protocol {
		w.Header().Set("Upgrade", protocol)
		http.Error(w, "this path speaks "+protocol, http.StatusUpgradeRequired)
		return nil, fmt.Errorf("upgrade to %q, not to %q", r.Header.Get("Upgrade"), protocol)
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	stream, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("not a unix socket"), conn.Close())
	}
	answer := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n\r\n"
	_, err = rw.WriteString(answer)
	if err = errors.Join(err, rw.Flush(), conn.SetDeadline(time.Time{})); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &upgraded{UnixConn: stream, r: rw.Reader}, nil
}
