package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
)

// observed is what "hutch run --observe --json" prints.
type observed struct {
	Module      string       `json:"module"`
	Digest      string       `json:"digest"`
	Definitions string       `json:"definitions"`
	Tool        string       `json:"tool"`
	Attempts    []attempt    `json:"attempts"`
	Result      *tool.Result `json:"result,omitempty"`
	// Error is why the call gave no result.
	Error string `json:"error,omitempty"`
	// More: something was refused, so the tool may have stopped early.
	More bool `json:"more"`
	// Notes are what a policy alone does not settle.
	Notes  []string `json:"notes"`
	Policy string   `json:"policy"`
}

// attempt is one thing that the tool asked for.
type attempt struct {
	Op       abi.Op `json:"op"`
	About    string `json:"about,omitempty"`
	Answered bool   `json:"answered"`
	Outcome  string `json:"outcome"` // ok, the code of a refusal, or unset
}

func attemptOf(a gate.Attempt) attempt {
	one := attempt{a.Op, oneLine(a.About), a.Answered, "ok"}
	switch {
	case a.Op == abi.OpConfig && !a.Answered:
		one.Outcome = "unset"
	case a.Code != abi.OK:
		one.Outcome = a.Code.String()
	}
	return one
}

// refused reports whether a tool may have stopped there.
func (a attempt) refused() bool { return !a.Answered && a.Op != abi.OpConfig }

// String says it as a comment does.
func (a attempt) String() string {
	did := "refused"
	switch {
	case a.Answered:
		did = "answered: " + a.Outcome
	case a.Op == abi.OpConfig:
		did = "not set"
	}
	return fmt.Sprintf("%s %s: %s", a.Op, a.About, did)
}

func runObserve(c *cli.Context, p program, call tool.Call) error {
	given, err := setPairs(c.StringSlice(flagSet))
	if err != nil {
		return err
	}
	var known recording
	if file := c.String(flagAnswers); file != "" {
		if known, err = readRecording(file); err != nil {
			return usagef("--%s: %w", flagAnswers, err).withHint("hutch run --%s FILE and hutch test --%s make such files", flagRecord, flagRecord)
		}
	}
	b, err := newBooth(c, p)
	if err != nil {
		return err
	}
	m, err := find(c, p, c.Args().First())
	if err != nil {
		return err
	}
	known.Config = overlaid(known.Config, given)
	w := &watch{booth: b, call: call, recording: known, played: c.IsSet(flagAnswers)}
	out, err := w.observe(c.Context, p, m)
	b.say.done()
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, out)
	}
	b.say.line("%s", out.summary())
	if out.More {
		b.say.line("hint: more may follow what was refused: see \"hutch help run\" for how to see on")
	}
	_, err = fmt.Fprint(c.App.Writer, out.Policy)
	return err
}

// overlaid is base with what is in over in its place.
func overlaid(base, over map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, base)
	maps.Copy(all, over)
	return all
}

// watch is one observed call.
type watch struct {
	booth
	call      tool.Call
	recording recording
	played    bool // it was named, and is not only what somebody set
}

// observe makes the call with nothing granted.
func (w *watch) observe(ctx context.Context, p program, f specimen) (out observed, err error) {
	on := newPlayer(f.name, w.log)
	on.refuses = !w.played
	defer func() { err = errors.Join(err, on.Close()) }()
	out.Notes = []string{}
	if f.prefix != "" {
		out.note("the policy in force lists its tools with the prefix %s, which is not part of this one", f.prefix)
	}
	err = w.mount(ctx, p, f.name, f.body, on.playback.options(w.log), func(tools *registry.Registry, m registry.Module) error {
		if err := on.open(ctx, m); err != nil {
			return err
		}
		if err := on.prepare(ctx, w.recording); err != nil {
			return fmt.Errorf("--%s: %w", flagAnswers, err)
		}
		w.call.Name = unprefixed(m, w.call.Name, f.prefix)
		result, err := tools.Call(ctx, localCaller(""), w.call)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, tool.ErrNotFound), errors.Is(err, tool.ErrInvalid):
			return trialError(m, w.call.Name, err)
		case err != nil:
			out.Error = err.Error()
		default:
			out.Result = &result
		}
		return w.report(&out, m, on.observer)
	})
	return out, err
}

// report fills in what was seen, and the policy, which it puts to the test.
func (w *watch) report(out *observed, m registry.Module, seen *gate.Observer) error {
	out.Module, out.Digest, out.Definitions, out.Tool = m.Name, m.Digest, m.Definitions, w.call.Name
	out.Attempts = []attempt{}
	read := map[string]string{}
	for _, a := range seen.Attempts() {
		if value, ok := w.recording.Config[a.Key]; ok && a.Op == abi.OpConfig {
			read[a.Key] = value
		}
		one := attemptOf(a)
		out.More = out.More || one.refused()
		out.Attempts = append(out.Attempts, one)
	}
	grant, unsayable := sayable(seen.Grant())
	policy := capability.Render(m.Name, capability.Binding{Digest: m.Digest, Definitions: m.Definitions}, grant)
	config, waiting := settled(read, grant)
	policy += configLines(config)
	for _, why := range unsayable {
		out.note("left out, for no policy can say it: %s", why)
	}
	for _, key := range waiting {
		out.note("config %s: its secret was not sent anywhere yet, so it is left out", key)
	}
	if err := out.check(policy, m, seen.Attempts()); err != nil {
		return err
	}
	out.unresolved(grant)
	out.Policy = out.comments() + policy
	return nil
}

// settled leaves out of a configuration what stands for secrets that are not
// granted: no policy may have those.
func settled(config map[string]string, g capability.Grant) (rest map[string]string, waiting []string) {
	rest = maps.Clone(config)
	for _, key := range slices.Sorted(maps.Keys(config)) {
		missing := func(name string) bool {
			return !slices.ContainsFunc(g.Secrets, func(s capability.SecretRule) bool { return s.Name == name })
		}
		if slices.ContainsFunc(secrets.Placeholders(config[key]), missing) {
			delete(rest, key)
			waiting = append(waiting, key)
		}
	}
	return rest, waiting
}

// configLines is the key config of a module in a policy.
func configLines(config map[string]string) string {
	if len(config) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("    config:\n")
	for _, key := range slices.Sorted(maps.Keys(config)) {
		fmt.Fprintf(&b, "      %s: %s\n", strconv.Quote(key), strconv.Quote(config[key]))
	}
	return b.String()
}

// check puts the policy in force and asks it about each attempt.
func (out *observed) check(policy string, m registry.Module, attempts []gate.Attempt) error {
	parsed, err := capability.Parse("the policy that was found", []byte(policy))
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	book := capability.NewBook(capability.Options{Policy: parsed})
	allowed := book.Effective(localCaller(""), policyModule(m), out.Tool)
	for _, a := range attempts {
		if a.Op == abi.OpConfig {
			continue // needs no grant
		}
		refusal := allowed.Allows(a.Op)
		if refusal == nil && a.HTTP != nil {
			_, refusal = allowed.HTTP(a.HTTP.Method, a.HTTP.URL)
		}
		if refusal != nil {
			why, _, _ := strings.Cut(refusal.Text, ";") // what follows is for who may decide
			out.note("refused with this policy too: %s", why)
		}
	}
	return nil
}

// unresolved notes names whose addresses may be ones that no policy lets through
// unless it says so.
func (out *observed) unresolved(g capability.Grant) {
	for _, rule := range g.HTTP {
		if strings.Contains(rule.Host, ".") && !strings.HasSuffix(rule.Host, ".local") && !strings.HasSuffix(rule.Host, ".lan") &&
			!strings.HasSuffix(rule.Host, ".internal") || len(rule.AllowPrivate) > 0 {
			continue
		}
		out.note("host %s was not looked up: if its address is on a network of your own, add allow_private: [ADDRESS/32] to its rule", rule.Host)
	}
}

// note adds a line, once.
func (out *observed) note(format string, args ...any) {
	const most = 20
	text := abi.OneLine(fmt.Sprintf(format, args...), 500)
	if !slices.Contains(out.Notes, text) && len(out.Notes) < most {
		out.Notes = append(out.Notes, text)
	}
}

// outcome says how the call ended.
func (out *observed) outcome() string {
	switch {
	case out.Error != "":
		return "failed: " + out.Error
	case out.Result.IsError:
		return "ended with an error: " + resultText(*out.Result)
	}
	return "ended with a result"
}

func (out *observed) refused() (n int) {
	for _, a := range out.Attempts {
		if a.refused() {
			n++
		}
	}
	return n
}

func (out *observed) summary() string {
	if len(out.Attempts) == 0 {
		return "the call asked for nothing, and " + out.outcome()
	}
	return fmt.Sprintf("%s, %d refused; the call %s", plural(len(out.Attempts), "thing was asked for", "things were asked for"), out.refused(), out.outcome())
}

// comments say what was seen, at the head of the policy. What a guest or a peer
// wrote stays on its line, and is plain ASCII.
func (out *observed) comments() string {
	const most = 100
	var b strings.Builder
	line := func(format string, args ...any) {
		text := strconv.QuoteToASCII(abi.OneLine(fmt.Sprintf(format, args...), 600))
		b.WriteString("# " + strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`) + "\n")
	}
	line("The least that lets one call of %s in %s pass, as observed:", out.Tool, out.Module)
	for i, a := range out.Attempts {
		if i == most {
			line("  and %d more", len(out.Attempts)-most)
			break
		}
		line("  %v", a)
	}
	if len(out.Attempts) == 0 {
		line("  nothing was asked for")
	}
	line("The call %s", out.outcome())
	if out.More {
		line("More may follow what was refused.")
	}
	for _, note := range out.Notes {
		line("Note: %s", note)
	}
	return b.String()
}
