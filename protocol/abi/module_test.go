package abi_test

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
)

func TestIsDigest(t *testing.T) {
	good := strings.Repeat("0123456789abcdef", 4)
	for s, want := range map[string]bool{
		good: true, "": false, good[1:]: false, good + "0": false, strings.ToUpper(good): false, "../" + good[3:]: false,
	} {
		if got := abi.IsDigest(s); got != want {
			t.Errorf("%q: %t, want %t", s, got, want)
		}
	}
}
