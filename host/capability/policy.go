package capability

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Policy is one policy file. The zero value grants nothing. It never changes.
type Policy struct {
	modules  map[string]Entry
	defaults defaults
	digest   string
}

// defaults are what entries say if they say nothing.
type defaults struct {
	limits   Limits
	approval Approval
}

// Parse reads a policy file; name is what errors call it. A text without a
// document is a policy that grants nothing. The error is a [*PolicyError].
//
// Everything is strict: a key that is not known or stands there twice, a value
// without its unit, a rule that can never match are findings with their line.
func Parse(name string, text []byte) (*Policy, error) {
	sum := sha256.Sum256(text)
	p := &Policy{modules: map[string]Entry{}, digest: hex.EncodeToString(sum[:])}
	root, f := readYAML(text)
	if f != nil {
		return nil, &PolicyError{Name: name, Findings: []Finding{f.finding()}}
	}
	if root == nil || root.kind == nothing {
		return p, nil
	}
	r := &reader{}
	r.policy(root, p)
	if err := r.err(name); err != nil {
		return nil, err
	}
	return p, nil
}

// Entry returns what the policy says about a module.
func (p *Policy) Entry(name string) (e Entry, ok bool) {
	if p != nil {
		e, ok = p.modules[name]
	}
	return e, ok
}

// Modules returns the names of the modules that the policy speaks of, sorted.
func (p *Policy) Modules() []string { return slices.Sorted(maps.Keys(p.modules)) }

// Digest is the SHA-256 of the policy's text, as 64 lower-case hex digits; empty
// for the zero value.
func (p *Policy) Digest() string { return p.digest }

func (r *reader) policy(root *node, p *Policy) {
	r.fields(root, "", []field{
		{"version", func(n *node, at string) {
			var version string
			value(r, n, at, &version, word("1"))
		}},
		{"defaults", func(n *node, at string) { r.defaultValues(n, at, &p.defaults) }},
		{"modules", func(n *node, at string) {
			if n.kind == nothing {
				return // all entries were removed
			}
			r.each(n, at, func(pr pair, at string) {
				if err := checkModuleName(pr.key); err != nil {
					r.bad(pr.line, at, "found "+shown(pr.key), err.Error())
					return
				}
				p.modules[pr.key] = r.entry(pr, at)
			})
		}},
	})
	if root.kind == mapping && root.get("version") == nil {
		r.bad(root.line, "version", "not there", "write version: 1 at the top")
	}
}

// checkModuleName refuses names that no file in a tool folder can have.
func checkModuleName(name string) error {
	ext := filepath.Ext(name)
	if strings.ContainsAny(name, `/\`) || name[0] == '.' || len(name) > 255 || ext != ".wasm" && ext != ".json" {
		return errors.New("a module is named by its file, such as github.wasm, without a folder")
	}
	return nil
}

func (r *reader) defaultValues(n *node, at string, d *defaults) {
	r.fields(n, at, []field{
		{"limits", func(n *node, at string) { r.limits(n, at, &d.limits) }},
		{"approval", func(n *node, at string) { value(r, n, at, &d.approval, word(Allow, Ask, Deny)) }},
	})
}

// limitField returns the field of one limit.
func limitField[T any, U int | int64 | time.Duration](r *reader, name string, into *U, parse func(string) (T, error), convert func(T) U) field {
	return field{name, func(n *node, at string) {
		var v T
		found := r.count()
		if value(r, n, at, &v, parse); r.count() == found {
			*into = convert(v)
		}
	}}
}

// notYet is a key of the grammar that nothing follows yet: one that was ignored
// would let its writer believe in it. instead is what holds.
func (r *reader) notYet(name, instead string) field {
	return field{name, func(n *node, at string) { r.bad(n.line, at, "not available yet", instead+": leave the key out") }}
}

// limits reads limits; the bounds are those of the configuration file.
func (r *reader) limits(n *node, at string, l *Limits) {
	const most, day = 1_000_000, 1e15
	same := func(n int64) int64 { return n }
	small := func(n int64) int { return int(n) }
	r.fields(n, at, []field{
		limitField(r, "memory", &l.Call.MemoryBytes, size(abi.PageBytes, 4<<30), same),
		limitField(r, "timeout", &l.Call.Wall, duration(time.Millisecond, time.Hour), func(d time.Duration) time.Duration { return d }),
		limitField(r, "fuel", &l.Call.Fuel, count(1, day), same),
		limitField(r, "input", &l.Call.InputBytes, size(1<<10, 64<<20), small),
		limitField(r, "output", &l.Call.OutputBytes, size(1<<10, 64<<20), small),
		limitField(r, "log_lines", &l.Call.LogLines, count(1, most), small),
		limitField(r, "log_line", &l.Call.LogLineBytes, size(1, 1<<20), small),
		limitField(r, "host_calls", &l.Call.HostCalls, count(1, most), small),
		limitField(r, "calls_per_day", &l.CallsPerDay, count(1, day), same),
		limitField(r, "egress_per_day", &l.EgressPerDay, size(1, 1<<50), same),
	})
}

// entry reads what stands below a module's name.
func (r *reader) entry(p pair, at string) Entry {
	e := Entry{Line: p.line}
	tools := map[string]*node{}
	r.fields(p.value, at, []field{
		{"digest", func(n *node, at string) { value(r, n, at, &e.Digest, parseDigest) }},
		{"definitions", func(n *node, at string) { value(r, n, at, &e.Definitions, parseDigest) }},
		{"prefix", func(n *node, at string) { value(r, n, at, &e.Prefix, parsePrefix) }},
		{"grant", func(n *node, at string) {
			e.Decided = true
			r.grant(n, at, &e.Grant, false)
		}},
		{keyConfig, func(n *node, at string) { r.config(n, at, &e) }},
		{"tools", func(n *node, at string) {
			r.each(n, at, func(p pair, at string) {
				if !toolName(p.key) {
					r.bad(p.line, at, "found "+shown(p.key), "a tool's name is letters, digits, _, - and ., at most 128")
				}
				tools[at] = p.value
				r.tool(p, at, &e)
			})
		}},
		{"agents", func(n *node, at string) { values(r, n, at, &e.Agents, parseAgent) }},
		r.notYet("instance", "each call starts from a clean state"),
		{"checkpoint", func(n *node, at string) { value(r, n, at, &e.Limits.Call.Fresh, parseCheckpoint) }},
		{"limits", func(n *node, at string) { r.limits(n, at, &e.Limits) }},
		{"signature", func(n *node, at string) { value(r, n, at, &e.Signature, parseKey) }},
	})
	r.reach(p, at, &e)
	return e
}

func (r *reader) tool(p pair, at string, e *Entry) {
	var t ToolEntry
	r.fields(p.value, at, []field{
		{"approval", func(n *node, at string) { value(r, n, at, &t.Approval, word(Allow, Ask, Deny)) }},
		{"grant", func(n *node, at string) {
			t.Grant = &Grant{}
			for _, p := range n.pairs {
				t.Narrows = append(t.Narrows, p.key)
			}
			r.grant(n, at, t.Grant, true)
		}},
		{"args", func(n *node, at string) { r.args(n, at, &t) }},
	})
	if e.Tools == nil {
		e.Tools = map[string]ToolEntry{}
	}
	e.Tools[p.key] = t
}

func (r *reader) args(n *node, at string, t *ToolEntry) {
	t.Args = map[string]ArgRule{}
	r.each(n, at, func(p pair, at string) {
		var rule ArgRule
		r.fields(p.value, at, []field{
			limitField(r, "max_length", &rule.MaxLength, count(1, 64<<20), func(n int64) int { return int(n) }),
		})
		if p.value.kind == mapping && len(p.value.pairs) == 0 {
			r.bad(p.line, at, "bounds nothing", "write max_length, or leave it out")
		}
		t.Args[p.key] = rule
	})
}

// secretScheme begins a configuration's value that stands for a secret.
const secretScheme = "secret://"

// placeholder returns the secret that a configuration's value stands for.
func placeholder(value string) (secret string, ok bool) {
	return strings.CutPrefix(value, secretScheme)
}

func (r *reader) config(n *node, at string, e *Entry) {
	const longest, most = 64 << 10, 256
	e.Config = map[string]string{}
	r.each(n, at, func(p pair, at string) {
		switch {
		case p.value.kind != scalar:
			r.bad(p.line, at, "found "+p.value.what(), "a single value is wanted here")
		case len(p.value.text) > longest:
			r.bad(p.line, at, "found a value that is too long", "at most 64KiB")
		default:
			e.Config[p.key] = p.value.text
		}
	})
	if len(n.pairs) > most {
		r.bad(n.line, at, "found too many keys", "at most 256")
	}
}

func parseDigest(text string) (string, error) {
	hexDigits, ok := strings.CutPrefix(text, "sha256:")
	if !ok || !abi.IsDigest(hexDigits) {
		return "", errors.New("a digest is sha256: and 64 lower-case hex digits; hutch tools inspect shows it")
	}
	return hexDigits, nil
}

// parseCheckpoint returns whether each call starts anew.
func parseCheckpoint(text string) (fresh bool, err error) {
	if text != "on" && text != "off" {
		return false, errors.New("allowed are on, off")
	}
	return text == "off", nil
}

func parsePrefix(text string) (string, error) {
	if len(text) > 16 || strings.Trim(text, letters+digits+"_-") != "" || !strings.Contains(letters, text[:1]) {
		return "", errors.New("a prefix is a letter and up to 15 more letters, digits, _ and -")
	}
	return text, nil
}

func parseAgent(text string) (string, error) {
	if !slug(text, 64) {
		return "", errors.New("an agent is named by lower-case letters, digits, - and _")
	}
	return text, nil
}

func parseKey(text string) (string, error) {
	key, ok := strings.CutPrefix(text, "ed25519:")
	raw, err := base64.StdEncoding.DecodeString(key)
	if !ok || err != nil || len(raw) != ed25519.PublicKeySize {
		return "", errors.New("a signature's key is ed25519: and 32 bytes in base64")
	}
	return key, nil
}
