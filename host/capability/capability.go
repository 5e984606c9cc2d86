// Package capability decides which tool may do what for whom: requests,
// grants, decisions.
//
// Nothing can be granted in this version, so a module that asks for something
// waits, and one that asks for nothing is ready. Who offered the module makes
// no difference: one that came with the binary is decided like any other.
package capability

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// Policy decides for an operator who granted nothing. It holds no state; its
// method may be called from any goroutine.
type Policy struct{}

// Decide says whether c may see and call s of module m; it is asked with the
// same arguments for both. Ready: m requests nothing. Held: it requests
// something, and each capability is named in the reason. Rejected: it requests
// something that is no capability. Neither the caller nor the tool makes a
// difference in this version.
func (Policy) Decide(_ tool.Caller, m tool.Module, _ tool.Spec) tool.Decision {
	asked := slices.Sorted(maps.Keys(m.Requests))
	if unknown := slices.DeleteFunc(slices.Clone(asked), known); len(unknown) > 0 {
		return tool.Decision{Status: tool.Rejected, Reason: fmt.Sprintf(
			"asks for %s: known capabilities are %s", quoted(unknown), strings.Join(names(), ", "))}
	}
	if len(asked) > 0 {
		return tool.Decision{Status: tool.Held, Reason: fmt.Sprintf(
			"asks for %s: this version of hutch grants no capability", strings.Join(asked, ", "))}
	}
	return tool.Decision{Status: tool.Ready}
}

// names are the capabilities that a policy file can grant, in its order.
func names() []string {
	return []string{"http", "secrets", "kv", "tracker", "conversation", "bridge", "tool", "fs"}
}

func known(name string) bool { return slices.Contains(names(), name) }

// quoted lists names that a module made up: a few, each cut and on one line.
func quoted(unknown []string) string {
	const most, longest = 5, 40
	var out []string
	for _, name := range unknown[:min(len(unknown), most)] {
		out = append(out, fmt.Sprintf("%+q", abi.Cut(name, longest)))
	}
	if rest := len(unknown) - most; rest > 0 {
		out = append(out, fmt.Sprintf("%d more", rest))
	}
	return strings.Join(out, ", ")
}
