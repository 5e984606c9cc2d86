//go:build !linux && !darwin && !windows

package main

import (
	"errors"
	"os"
)

// forgetTyped fails: how to discard what was typed is not known here, and nobody
// agrees to what they have not seen.
func forgetTyped(*os.File) error { return errors.ErrUnsupported }
