package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/host/address"
	"github.com/hutch-run/hutch/protocol/abi"
)

const (
	// maxAddrs is how many addresses of a name are tried, each when the one
	// before failed or has not answered for the stagger.
	maxAddrs = 8
	stagger  = 250 * time.Millisecond
)

// dialer opens the connections of one pool: to public addresses and to those that
// the rules of its requests allow.
type dialer struct {
	c       *Client
	allowed []netip.Prefix
}

// conn remembers the address that was checked and dialled.
type conn struct {
	net.Conn
	addr netip.AddrPort
}

// RemoteAddr returns the address that was dialled, whatever the connection says.
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.addr) }

// hopKey is where a hop's context stands in that of its dial: the transport cuts
// the latter loose from the former's end, so that others could use the connection.
type hopKey struct{}

// withHop ends ctx when the hop ends that the dial is for.
func withHop(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	hop, ok := ctx.Value(hopKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(hop, cancel)
	return ctx, func() { stop(); cancel() }
}

func (d *dialer) dial(ctx context.Context, _, hostport string) (net.Conn, error) {
	ctx, done := withHop(ctx)
	defer done()
	return d.connect(ctx, hostport)
}

func (d *dialer) dialTLS(ctx context.Context, _, hostport string) (net.Conn, error) {
	ctx, done := withHop(ctx)
	defer done()
	plain, err := d.connect(ctx, hostport)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	secure := tls.Client(plain, &tls.Config{
		ServerName: host, RootCAs: d.c.o.Roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
	ctx, cancel := context.WithTimeout(ctx, d.c.o.ConnectTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(handshakeError{err}, plain.Close())
	}
	return secure, nil
}

// handshakeError marks what went wrong between connecting and the request.
type handshakeError struct{ error }

func (e handshakeError) Unwrap() error { return e.error }

// connect resolves once, checks, and dials what passed.
func (d *dialer) connect(ctx context.Context, hostport string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.c.o.ConnectTimeout)
	defer cancel()
	found, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	passed, refused := d.check(host, found)
	if refused != nil {
		return nil, refused
	}
	addrs := make([]netip.AddrPort, len(passed))
	for i, a := range passed {
		addrs[i] = netip.AddrPortFrom(a, uint16(port))
	}
	return d.race(ctx, addrs)
}

func (d *dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	if strings.Contains(host, ".") {
		host += "."
	}
	return d.c.o.Resolver.LookupNetIP(ctx, "ip", host)
}

// blocked is the cause of a refusal because of where a name leads. The address is
// for the record; a guest would learn from it what an inner network looks like.
type blocked struct{ addr netip.Addr }

func (b blocked) Error() string { return fmt.Sprintf("address %s is not allowed", b.addr) }

// check returns the addresses that may be dialled, families taking turns.
func (d *dialer) check(host string, found []netip.Addr) ([]netip.Addr, *Refused) {
	own, err := d.c.o.Own()
	if err != nil {
		return nil, &Refused{Code: abi.Unavailable, Text: "the addresses of this machine cannot be listed, so none can be checked", Err: err}
	}
	var four, six []netip.Addr
	for _, a := range found {
		switch a = a.Unmap(); {
		case !address.Permits(a, d.allowed, own):
		case a.Is4():
			four = append(four, a)
		default:
			six = append(six, a)
		}
	}
	if len(four)+len(six) > 0 {
		return interleave(six, four), nil
	}
	if len(found) == 0 {
		return nil, &Refused{Code: abi.Unavailable, Text: fmt.Sprintf("host %s: has no address", shown(host))}
	}
	return nil, &Refused{Code: abi.Denied, Err: blocked{found[0].Unmap()}, Text: fmt.Sprintf(
		"host %s: its address is not a public one (blocked_ip); a grant needs allow_private to reach it", shown(host))}
}

// interleave lets two lists take turns, up to maxAddrs.
func interleave(a, b []netip.Addr) (out []netip.Addr) {
	for i := range max(len(a), len(b)) {
		if i < len(a) {
			out = append(out, a[i])
		}
		if i < len(b) {
			out = append(out, b[i])
		}
	}
	return out[:min(len(out), maxAddrs)]
}

type attempt struct {
	conn net.Conn
	err  error
}

// race dials one address after the other, the next as soon as one failed or took
// longer than the stagger, and returns the first connection. The others are closed.
func (d *dialer) race(ctx context.Context, addrs []netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs []error
	done, begun := make(chan attempt), 0
	for len(errs) < len(addrs) {
		var next <-chan time.Time
		if begun < len(addrs) {
			go d.try(ctx, addrs[begun], done)
			begun++
			next = time.After(stagger)
		}
		select {
		case a := <-done:
			if a.err == nil {
				return a.conn, nil
			}
			errs = append(errs, a.err)
		case <-next:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return nil, errors.Join(errs...)
}

func (d *dialer) try(ctx context.Context, addr netip.AddrPort, done chan<- attempt) {
	var a attempt
	defer func() {
		if r := recover(); r != nil {
			a = attempt{err: fmt.Errorf("dial panicked: %v", r)}
		}
		select {
		case done <- a:
		case <-ctx.Done():
			if a.err == nil {
				_ = a.conn.Close() // nobody waits for it
			}
		}
	}()
	var raw net.Conn
	if raw, a.err = d.c.o.Dial(ctx, "tcp", addr.String()); a.err == nil {
		a.conn = &conn{raw, addr}
	}
}

// interfaceAddrs returns the addresses of this machine's network interfaces.
func interfaceAddrs() ([]netip.Addr, error) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				own = append(own, addr.Unmap())
			}
		}
	}
	return own, nil
}
