package owner

import (
	"log/slog"
	"net"
)

// sameUser accepts connections of this process's user alone.
type sameUser struct {
	net.Listener
	log *slog.Logger
}

// Accept implements [net.Listener].
func (l *sameUser) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err := checkPeer(c); err != nil {
			l.log.Warn("a connection to the socket was refused", "error", err)
			_ = c.Close() // nothing was said on it
			continue
		}
		return c, nil
	}
}
