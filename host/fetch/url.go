package fetch

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/abi"
)

const (
	maxMethodBytes = 16
	maxShown       = 100 // bytes of what a stranger wrote, in an error
)

// deny, invalid and the like make the refusals of this package.
func deny(format string, args ...any) *Refused {
	return &Refused{Code: abi.Denied, Text: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *Refused {
	return &Refused{Code: abi.Invalid, Text: fmt.Sprintf(format, args...)}
}

func overLimit(format string, args ...any) *Refused {
	return &Refused{Code: abi.Limit, Text: fmt.Sprintf(format, args...)}
}

// decided is a refusal by whoever decides.
func decided(r *capability.Refusal) *Refused {
	return &Refused{Code: cmp.Or(r.Code, abi.Denied), Text: r.Text}
}

// shown quotes what a stranger wrote so that it can stand in an error.
func shown(s string) string { return fmt.Sprintf("%+q", abi.Cut(s, maxShown)) }

func checkMethod(method string) (string, *Refused) {
	method = strings.ToUpper(method)
	switch {
	case method == "":
		return "GET", nil
	case method == "CONNECT" || method == "TRACE" || method == "TRACK":
		return "", deny("method %s: opens a tunnel or echoes what was sent, and is never allowed", method)
	case len(method) > maxMethodBytes || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return "", invalid("method %s: allowed are up to %d letters", shown(method), maxMethodBytes)
	}
	return method, nil
}

// sameOrigin compares two canonical URLs.
func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
