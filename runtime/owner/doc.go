// Package owner gives a state directory to one process at a time, and lets the
// others reach it over a socket in the directory.
//
// A lock on the file owner.lock says who owns it, and ends with the process
// however that ends. The socket speaks HTTP, and carries a byte stream for each
// client that upgrades. Only processes of the same user get through: by the
// directory's mode, the socket's, and, where the system says who is at the other
// end, by that too.
package owner

import (
	"errors"
	"fmt"
	"time"
)

// Info is what an owner says about itself to those who come later.
type Info struct {
	PID int `json:"pid"`
	// Kind is the command that owns: "serve" or "mcp".
	Kind string `json:"kind"`
	// Version is the program's; others do not talk to it.
	Version string `json:"version"`
	// Tools are the tool folders, absolute.
	Tools []string `json:"tools"`
	// Policy is the policy file, absolute.
	Policy  string    `json:"policy,omitempty"`
	Started time.Time `json:"started"`
	// Addr is where it serves agents, as far as it tells; it is not known yet when the
	// owner announces itself.
	Addr string `json:"addr,omitempty"`
	// TLS: it speaks TLS there.
	TLS bool `json:"tls,omitempty"`
	// Socket is where it listens.
	Socket string `json:"socket"`
}

// String names the owner for a person.
func (i Info) String() string { return fmt.Sprintf("hutch %s (process %d)", i.Kind, i.PID) }

// ErrOwned says that another process owns the directory.
var ErrOwned = errors.New("the state directory is in use")

// ErrGone says that nobody answers in the directory, though there may be an owner
// in a moment.
var ErrGone = errors.New("no process answers in the state directory")
