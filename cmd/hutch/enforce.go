package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// lastWait is how long a command may take to end after the first signal: more than
// [grace] and what comes after it.
const lastWait = 12 * time.Second

// enforce sees to it that a signal ends the process. The first one, which ends
// asked, asks; after it restore gives back the default action, so that the second
// one ends the process at once. If the command has not ended lastWait later,
// something hangs, and it is given up. enforce returns when ended is closed.
func enforce(asked context.Context, restore func(), ended <-chan struct{}, giveUp func()) {
	select {
	case <-asked.Done():
		restore()
	case <-ended:
		return
	}
	timer := time.NewTimer(lastWait)
	defer timer.Stop()
	select {
	case <-timer.C:
		giveUp()
	case <-ended:
	}
}

// giveUp ends the process, and says so if that can be done without waiting: what
// hangs may be standard error itself.
func giveUp(stderr io.Writer) {
	d := newDrain(stderr)
	report(d, fmt.Errorf("%w: it did not end within %s, something hangs", errInterrupted, lastWait))
	d.close()
	os.Exit(exitInterrupted)
}
