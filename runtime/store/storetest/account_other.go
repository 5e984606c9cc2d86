//go:build !unix

package storetest

import "os/exec"

// serverAccount is ourselves, on systems where that may be.
func serverAccount() (*account, error) { return nil, nil }

func (a *account) runs(*exec.Cmd) {}
