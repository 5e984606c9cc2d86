//go:build !linux

package main

import (
	"errors"
	"time"
)

func processorTime() (time.Duration, error) {
	return 0, errors.New("this needs Linux; leave -clock away")
}
