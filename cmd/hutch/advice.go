package main

import (
	"bytes"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// advice is what to do about a module that cannot be used. body is its file; nil
// if that could not be read.
func (in inspection) advice(body []byte, cfg Config) string {
	switch {
	case in.Status == tool.Held && strings.HasPrefix(in.Reason, "quarantined:"):
		const release = "hutch tools release " // the reason ends with it, and whom
		return "replace the file, or: " + in.Reason[max(0, strings.LastIndex(in.Reason, release)):] + cfg.stateFlag()
	case in.Status == tool.Held:
		return in.howToDecide()
	case in.Status != tool.Rejected:
		return ""
	case body == nil:
		return "put a file there that can be read, or remove it"
	case !bytes.HasPrefix(body, []byte("\x00asm")):
		return "this is something else under a module's name: put the module there, or remove it"
	case saysWhatToDo(in.Reason):
		return ""
	}
	if most := needed(body); most > cfg.Limits.Call.MemoryBytes {
		return "it needs " + formatSize(most) + " and the limit is " + formatSize(cfg.Limits.Call.MemoryBytes) +
			": allow as much with HUTCH_LIMIT_MEMORY=" + formatSize(most)
	}
	return "build the module again, or remove it; the other modules are not affected"
}

// howToDecide is the command in which the reason of a held module ends.
func (in inspection) howToDecide() string {
	command := decidingCommandIn(in.Reason)
	if command == "" {
		return ""
	}
	if in.Source == fromFile {
		return "once it lies in a tool folder: " + command
	}
	return command
}

// decidingCommandIn is the command in which a reason ends that waits for a decision;
// empty if it does not.
func decidingCommandIn(reason string) string {
	if i := strings.LastIndex(reason, runDeciding); i >= 0 {
		return reason[i+len("run "):]
	}
	return ""
}

// withoutCommand is a reason without that end.
func withoutCommand(reason string) string {
	if i := strings.LastIndex(reason, runDeciding); i >= 0 {
		reason, _, _ = strings.Cut(reason[:i], ": look with hutch tools diff ")
	}
	return strings.TrimRight(reason, ": ")
}

// runDeciding begins such a command.
const runDeciding = "run hutch tools "

// saysWhatToDo reports whether a reason ends in advice of its own: what follows
// its last colon begins with what to do.
func saysWhatToDo(reason string) bool {
	last := strings.TrimSpace(reason[strings.LastIndex(reason, ":")+1:])
	for _, verb := range []string{"rename ", "build ", "run ", "choose "} {
		if strings.HasPrefix(last, verb) {
			return true
		}
	}
	return false
}

// needed is the memory that a module starts with, in bytes.
func needed(body []byte) int64 {
	m, err := wasmbin.Check(body, wasmbin.Budget{MemoryBytes: 4 << 30})
	if err != nil || m.Memory == nil {
		return 0
	}
	return int64(m.Memory.Min) * abi.PageBytes
}
