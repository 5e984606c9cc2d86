package fetch

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/hutch-run/hutch/host/capability"
)

const (
	maxIdleConns        = 16 // of a module
	maxIdleConnsPerHost = 4
	maxH2Connection     = 4<<20 - 1 // bytes in flight, the most that can be set
	maxH2Stream         = 1 << 20
)

// poolKey names connections that may be shared: those of one module, opened under
// rules that allow the same addresses. A rule that allows less never gets a
// connection that one that allows more has opened. The module's name is enough, without
// its digest: one version serves at a time, its connections are closed when it goes
// ([Client.Forget]), a connection has no rights of its own, since every request is
// decided about and gets its secrets anew, and only one that serves can use it.
type poolKey struct{ module, allowed string }

type pool struct {
	transport http.RoundTripper
	close     func() // closes the connections that nobody uses
	used      int64
}

// allowedBy returns what a rule allows besides public addresses; one for any host
// allows nothing else.
func allowedBy(rule capability.HTTPRule) []netip.Prefix {
	if rule.Host == "*" {
		return nil
	}
	return rule.AllowPrivate
}

func keyOf(module string, allowed []netip.Prefix) poolKey {
	if len(allowed) == 0 {
		return poolKey{module: module}
	}
	if len(allowed) > 1 {
		allowed = slices.Compact(slices.SortedFunc(slices.Values(allowed), netip.Prefix.Compare))
	}
	text := make([]byte, 0, 32)
	for _, p := range allowed {
		text = append(p.AppendTo(text), ' ')
	}
	return poolKey{module, string(text)}
}

// pool returns the connections for a module's requests under a rule.
func (c *Client) pool(module string, rule capability.HTTPRule) *pool {
	allowed := allowedBy(rule)
	key := keyOf(module, allowed)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pools[key]
	if p == nil {
		if len(c.pools) >= c.o.MaxPools {
			c.dropOldest()
		}
		p = c.newPool(slices.Clone(allowed))
		c.pools[key] = p
	}
	c.uses++
	p.used = c.uses
	return p
}

// dropOldest forgets the pool that was used the longest ago. Requests that use it
// finish, and their connections idle out. It is called under the lock.
func (c *Client) dropOldest() {
	var oldest poolKey
	for key, p := range c.pools {
		if o := c.pools[oldest]; o == nil || p.used < o.used {
			oldest = key
		}
	}
	c.pools[oldest].close()
	delete(c.pools, oldest)
}

// Forget closes the connections that are kept for a module. A request that runs is
// not disturbed, and the next one opens new connections.
func (c *Client) Forget(module string) {
	c.forget(func(key poolKey) bool { return key.module == module })
}

// Close closes all connections that are kept.
func (c *Client) Close() { c.forget(func(poolKey) bool { return true }) }

func (c *Client) forget(which func(poolKey) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, p := range c.pools {
		if which(key) {
			p.close()
			delete(c.pools, key)
		}
	}
}

func (c *Client) newPool(allowed []netip.Prefix) *pool {
	d := &dialer{c: c, allowed: allowed}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	t := &http.Transport{
		Proxy:                  nil, // whatever the environment says
		DialContext:            d.dial,
		DialTLSContext:         d.dialTLS,
		DisableCompression:     true, // see body.go
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    maxIdleConnsPerHost,
		IdleConnTimeout:        c.o.IdleTimeout,
		MaxResponseHeaderBytes: c.o.MaxHeaderBytes,
		Protocols:              protocols,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: maxH2Connection,
			MaxReceiveBufferPerStream:     maxH2Stream,
		},
	}
	return &pool{transport: t, close: t.CloseIdleConnections}
}
