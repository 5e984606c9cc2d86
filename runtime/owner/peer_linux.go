package owner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// checkPeer asks the kernel who is at the other end (unix(7), SO_PEERCRED). The
// administrator can do anything anyway.
func checkPeer(c net.Conn) error {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("not a unix socket")
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *syscall.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		cred, asked = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(err, asked); err != nil {
		return err
	}
	return checkUser(cred.Uid, os.Geteuid())
}

func checkUser(peer uint32, own int) error {
	if int64(peer) != int64(own) && peer != 0 {
		return fmt.Errorf("it is of user %d, the state directory of user %d", peer, own)
	}
	return nil
}
