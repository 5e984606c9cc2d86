package capability

import (
	"net/netip"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Entry is what a policy says about one module. It is shared and must not be
// changed; so is all it holds.
type Entry struct {
	// Digest and Definitions are what the decision was made for, as 64 lower-case
	// hex digits each; empty means that nothing was decided (Digest) or that the
	// bytes alone count (Definitions).
	Digest, Definitions string
	// Prefix stands before the names of the module's tools.
	Prefix string
	// Signature is the ed25519 key, in base64, that must have signed the module.
	Signature string
	// Decided reports whether there is a grant at all; it may be an empty one.
	Decided bool
	Grant   Grant
	// Config is what the module reads, placeholders secret://NAME among it.
	Config map[string]string
	// Tools is keyed by published names without Prefix.
	Tools map[string]ToolEntry
	// Agents are who may see and call its tools; nil is everyone.
	Agents []string
	Limits Limits
	// Line is where the entry begins.
	Line int
}

// ToolEntry is what a policy says about one tool of a module.
type ToolEntry struct {
	Approval Approval
	// Grant narrows the module's; nil leaves it as it is. A kind that is in
	// Narrows is confined to what Grant has of it, the others are not.
	Grant   *Grant
	Narrows []string
	// Args bound the tool's arguments, by name.
	Args map[string]ArgRule
}

// ArgRule bounds one argument. MaxLength is in characters, 0 is no bound.
type ArgRule struct{ MaxLength int }

// Grant is what is asked for, or given. The zero value is nothing. In a request
// a rule may leave out what it is about, which asks for whatever is granted: an
// HTTPRule or SecretRule without a host or name, or the name "*" in a list.
type Grant struct {
	HTTP         []HTTPRule
	Secrets      []SecretRule
	KV           *KVRule
	Tracker      []string
	Conversation []string
	Bridge       []string
	Tool         []string
	FS           []FSRule
	// Reasons say why names are asked for, by "KIND NAME".
	Reasons map[string]string
}

// HTTPRule lets requests through that [HTTPRule.Match] it.
type HTTPRule struct {
	Scheme string // https or http; empty is https
	// Host is canonical: exact, "*.x" for one label before x, or "*" for every
	// public address.
	Host    string
	Methods []string // empty is GET and HEAD
	Paths   []string // prefixes on the borders of segments; empty is every path
	Ports   []int    // empty is the one of the scheme
	// MaxRequest and MaxResponse are in bytes, 0 leaves the default.
	MaxRequest, MaxResponse int64
	Rate                    Rate
	// AllowPrivate are the addresses that the host may have though they are not
	// public.
	AllowPrivate []netip.Prefix
	Approval     Approval
	Reason       string
}

// SecretRule lets the host put a secret into requests to Host. Exactly one of
// Header and Query is set.
type SecretRule struct {
	Name, Header, Query string
	Prefix              string // stands before the value
	Host                string
	Paths               []string // as in [HTTPRule]
	Reason              string
}

// KVRule gives a module a little storage of its own. Max is in bytes; a zero
// Max or TTL leaves the default, except in a tool's grant, where a zero Max
// gives nothing.
type KVRule struct {
	Max    int64
	TTL    time.Duration
	Reason string
}

// FSRule lets a module into a folder; Mode is ro or rw.
type FSRule struct{ Path, Mode, Reason string }

// Rate is N in each Per; the zero value is no rate.
type Rate struct {
	N   int
	Per time.Duration
}

// Approval says whether a call waits for a person. Empty is not said.
type Approval string

// What approval can be.
const (
	Allow Approval = "allow"
	Ask   Approval = "ask"
	Deny  Approval = "deny"
)

// Limits bound the calls of one module. Zero fields leave the default.
type Limits struct {
	Call abi.Limits
	// CallsPerDay counts calls, EgressPerDay bytes sent and received.
	CallsPerDay, EgressPerDay int64
}

// or fills in what l leaves unsaid.
func (l Limits) or(d Limits) Limits {
	set(&l.Call.Wall, d.Call.Wall)
	set(&l.Call.MemoryBytes, d.Call.MemoryBytes)
	set(&l.Call.InputBytes, d.Call.InputBytes)
	set(&l.Call.OutputBytes, d.Call.OutputBytes)
	set(&l.Call.LogLines, d.Call.LogLines)
	set(&l.Call.LogLineBytes, d.Call.LogLineBytes)
	set(&l.Call.HostCalls, d.Call.HostCalls)
	set(&l.Call.Fuel, d.Call.Fuel)
	l.Call.Fresh = l.Call.Fresh || d.Call.Fresh
	set(&l.CallsPerDay, d.CallsPerDay)
	set(&l.EgressPerDay, d.EgressPerDay)
	return l
}

func set[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Refusal is why something is not allowed. Text may be shown to a guest: it
// names what was asked and what to do, and nothing secret. Do is the command by
// which a person allows it, for the operator alone; empty if there is none.
type Refusal struct {
	Code abi.Code
	Text string
	Do   string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }
