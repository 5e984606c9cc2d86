package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/owner"
	"github.com/hutch-run/hutch/runtime/registry"
)

// flagYes decides without asking.
const flagYes = "yes"

// decideFlags are the flags of every command that decides.
func decideFlags(own ...cli.Flag) []cli.Flag {
	return slices.Concat(own, []cli.Flag{
		&cli.BoolFlag{Name: flagYes, Usage: "do not ask; the hutch that runs must have been started with --" + flagUnattended},
		jsonFlag("what was decided"),
	}, folderFlags(), []cli.Flag{logFlag("error")})
}

// proposal is what somebody is about to decide.
type proposal struct {
	*dossier
	action  string
	binding capability.Binding
	// grant and config are what the module has afterwards.
	grant  capability.Grant
	config map[string]string
	// undecided: nothing is decided about it afterwards.
	undecided bool
	// back: a module that came with hutch has what it came with afterwards.
	back  bool
	notes []string
	// kept is how many values are kept under the module's name.
	kept int64
}

// decision is the proposal as it is put into the policy file.
func (pr *proposal) decision(unattended bool) decision {
	d := decision{Action: pr.action, Module: pr.module.Name, Digest: pr.binding.Digest, Definitions: pr.binding.Definitions, Seen: pr.mark, Unattended: unattended, Forget: pr.forgets()}
	switch {
	case pr.action == actionApprove:
		d.Pin = pr.pins()
		return d
	case pr.back:
		d.Config = map[string]string{}
		return d
	case !pr.undecided:
		d.Policy = capability.Render(d.Module, capability.Binding{}, pr.grant)
	}
	if !maps.Equal(pr.config, pr.entry.Config) || pr.shippedGrant {
		d.Config = maps.Clone(pr.config)
		if d.Config == nil {
			d.Config = map[string]string{}
		}
	}
	return d
}

// deciding runs a command that decides: propose makes of what there is to know what
// to ask about; nobody is asked about what changes nothing.
func deciding(c *cli.Context, p program, propose func(context.Context, *App, *dossier, *terminal) (*proposal, error)) (err error) {
	cfg, err := loadConfig(c, p)
	if err != nil {
		return err
	}
	running, err := cfg.adopt(c.Context)
	if err != nil {
		return err
	}
	var who *terminal
	switch {
	case !c.Bool(flagYes):
		if who, err = openTerminal(p); err != nil {
			return unattendedHint(err)
		}
		defer func() { err = errors.Join(err, who.close()) }()
	case running == nil:
		return errNobodyAllows()
	}
	return aboutModule(c, p, cfg, func(ctx context.Context, a *App, say *voice, d *dossier) error {
		pr, err := propose(ctx, a, d, who)
		if err != nil {
			return err
		}
		return a.settle(ctx, c, say, who, pr)
	})
}

func unattendedHint(err error) error {
	if hintOf(err) != "" {
		return err
	}
	return hinted(err, "run it in a terminal; or start hutch with --%s, which SECURITY.md advises against, and add --%s", flagUnattended, flagYes)
}

// adopt takes tool folders and policy from whoever owns the state folder, where
// nobody named others: a command that a message shows works in any folder then. It
// returns nil if nobody does.
func (cfg *Config) adopt(ctx context.Context) (*owner.Client, error) {
	c, err := owner.Dial(ctx, cfg.State)
	if errors.Is(err, owner.ErrGone) || err == nil && c.Owner.Kind == ownerTools {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cfg.follow(c.Owner)
	return c, cfg.agrees(c.Owner)
}

// settle asks about a proposal, has it carried out and says what came of it. who is
// nil if nobody is to be asked.
func (a *App) settle(ctx context.Context, c *cli.Context, say *voice, who *terminal, pr *proposal) error {
	d := pr.decision(who == nil)
	changes, err := a.changes(d)
	if err != nil {
		return err
	}
	if !changes && !d.Pin || pr.asShipped() {
		say.line("%s: that is so already: nothing changes", pr.module.Name)
		return a.tellDecided(c, say, pr, false)
	}
	if pr.kept, err = a.cfg.keptValues(ctx, pr.module.Name); err != nil {
		return err
	}
	if who != nil {
		if err := who.show("\n" + pr.sheet() + "\n"); err != nil {
			return err
		}
		if err := who.agree(ctx, pr.question()); err != nil {
			return err
		}
	}
	if err := a.cfg.decide(ctx, d); err != nil {
		return err
	}
	if d.Pin {
		a.accept(d.Module, pr.binding, 0)
	}
	if _, err := a.policy.reload(); err != nil {
		return err
	}
	a.book.Swap(a.policy.current())
	a.modules.Reconsider(ctx)
	return a.tellDecided(c, say, pr, true)
}

// changes tries a decision on the policy file as it is, and reports whether it makes
// a difference.
func (a *App) changes(d decision) (bool, error) {
	text, err := readPolicyText(a.cfg.Policy)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = nil, nil
	}
	if err != nil {
		return false, err
	}
	next, err := d.edit(a.cfg.Policy, text)
	if err != nil {
		return false, err
	}
	parsed, err := capability.Parse(a.cfg.Policy, next)
	if err != nil {
		return false, err
	}
	entry, _ := parsed.Entry(d.Module)
	mark, err := markOf(entry)
	return mark != d.Seen, err
}

// asShipped reports whether a module that came with hutch is to have what it came
// with. That is not written down, for it would hold the module at the next version of
// hutch.
func (pr *proposal) asShipped() bool {
	return pr.shippedGrant && len(capability.DiffGrants(pr.entry.Grant, pr.grant)) == 0 && maps.Equal(pr.entry.Config, pr.config)
}

func (pr *proposal) question() string {
	switch {
	case pr.action == actionApprove && pr.older:
		return "Go back to this older version?"
	case pr.action == actionApprove:
		return "Accept this version?"
	case pr.back:
		return "Go back to what it came with?"
	case pr.action == actionRevoke:
		return "Take this away?"
	case len(pr.grant.Kinds()) == 0:
		return "Allow none of it?"
	}
	return "Allow this?"
}

// decided is what a command that decides prints with --json.
type decided struct {
	Action      string            `json:"action"`
	Module      string            `json:"module"`
	Digest      string            `json:"digest"`
	Definitions string            `json:"definitions,omitempty"`
	Grant       []string          `json:"grant"`
	Changes     []string          `json:"changes"`
	Config      map[string]string `json:"config,omitempty"`
	Status      tool.Status       `json:"status"`
	Reason      string            `json:"reason,omitempty"`
}

// tellDecided says what the module has now, and how it stands; to people only if that
// was decided just now.
func (a *App) tellDecided(c *cli.Context, say *voice, pr *proposal, decidedNow bool) error {
	m := pr.module
	for _, now := range a.modules.Modules() {
		if now.Name == m.Name && now.Source == m.Source {
			m = now
		}
	}
	for _, note := range pr.notes {
		say.line("warning: %s", note)
	}
	if m.Reason != "" && !pr.undecided {
		say.line("warning: %s: %s: %s", m.Name, m.Status, m.Reason)
	}
	changes := capability.DiffGrants(pr.entry.Grant, pr.grant)
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, decided{
			Action: pr.action, Module: m.Name, Digest: pr.binding.Digest, Definitions: pr.binding.Definitions,
			Grant: orEmpty(pr.grant.Lines()), Changes: orEmpty(changes), Config: pr.config, Status: m.Status, Reason: m.Reason,
		})
	}
	if !decidedNow {
		return nil
	}
	done := map[string]string{actionGrant: "granted", actionRevoke: "revoked", actionApprove: "approved"}[pr.action]
	text := fmt.Sprintf("%s %s, %s: %s\n", done, oneLine(m.Name), pr.now, m.Status)
	for _, row := range changes {
		text += oneLine(row) + "\n"
	}
	_, err := io.WriteString(c.App.Writer, text)
	return err
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// sheet is what somebody reads before deciding.
func (pr *proposal) sheet() string {
	var b sheet
	pr.about(&b)
	b.list("asks for", orNothing(pr.nearest(reasoned(pr.now.asks), pr.now.asks)))
	pr.whatChanged(&b)
	b.list("has", orNothing(pr.nearest(pr.entry.Grant.Lines(), pr.entry.Grant)))
	rows := pr.nearest(capability.DiffGrants(pr.entry.Grant, pr.grant), pr.grant)
	switch {
	case pr.undecided:
		b.list("gets", append(rows, "nothing is decided about it any more, so it is held if it asks for anything"))
	case len(rows) > 0:
		b.list("gets", rows)
	case len(pr.grant.Kinds()) == 0:
		b.row("gets", "nothing")
	default:
		b.row("gets", "what it has")
	}
	pr.afterwards(&b)
	b.list("config", configRows(pr.entry.Config, pr.config))
	if key, what := pr.values(); key != "" {
		b.row(key, "%s", what)
	}
	b.list("warning", pr.notes)
	if short := pr.inShort(); short != "" {
		b.row("in short", "%s", short)
	}
	return b.String()
}

// afterwards says what goes for a module that came with hutch, and how to have it
// otherwise: to take away what was decided could mean two things.
func (pr *proposal) afterwards(b *sheet) {
	switch {
	case pr.back:
		b.row("then", "what it came with counts again, also that of later versions of hutch")
	case pr.action == actionRevoke && pr.module.Shipped && len(pr.grant.Kinds()) == 0:
		b.row("then", "it has nothing, also not what it came with, which this gives back: hutch tools revoke %s --%s", shellWord(pr.module.Name), flagDefault)
	}
}

// about says which module it is about.
func (d *dossier) about(b *sheet) {
	b.row("module", "%s, from %s", d.module.Name, d.module.Source)
	b.row("version", "%s", d.now)
	var tools []string
	for _, t := range d.now.said.Tools {
		tools = append(tools, t.Name+": "+summaryOf(t))
	}
	b.list("tool", few(tools, d.module))
}

// mostChanges is how many changes a question shows.
const mostChanges = 30

// whatChanged says how the version differs from what was decided about.
func (d *dossier) whatChanged(b *sheet) {
	if !d.changed() {
		return
	}
	b.row("before", "%s%s", d.before, d.before.unknown())
	d.direction(b)
	b.list("asks new", d.requested())
	b.list("says new", few(d.sayings(), d.module))
}

// direction says of what kind the change is.
func (d *dossier) direction(b *sheet) {
	if d.older {
		b.row("OLDER", "from %s back to %s", d.before, d.now)
	}
	if d.sameButCode() {
		b.row("new", "only the code differs")
	}
}

func (v moduleVersion) unknown() string {
	if v.known {
		return ""
	}
	return ", of which nothing is known here any more"
}

func few(rows []string, m registry.Module) []string {
	if rest := len(rows) - mostChanges; rest > 0 {
		return append(rows[:mostChanges:mostChanges], fmt.Sprintf("and %d more, see: hutch tools diff %s", rest, shellWord(m.Name)))
	}
	return rows
}

// reasoned says what a module asks for, and why it says so.
func reasoned(asks capability.Grant) []string {
	lines := asks.Lines()
	for i, why := range asks.Why() {
		if why != "" {
			lines[i] += ": " + quoted(why)
		}
	}
	return lines
}

func orNothing(rows []string) []string {
	if len(rows) == 0 {
		return []string{"nothing"}
	}
	return rows
}

func configRows(old, now map[string]string) (rows []string) {
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if value, stays := now[key]; !stays || value != old[key] {
			rows = append(rows, "- "+key+"="+quoted(old[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if value, was := old[key]; !was || value != now[key] {
			rows = append(rows, "+ "+key+"="+quoted(now[key]))
		}
	}
	return rows
}

// withoutSecrets returns a configuration without placeholders of secrets that a
// grant does not have.
func withoutSecrets(config map[string]string, g capability.Grant) map[string]string {
	left := maps.Clone(config)
	maps.DeleteFunc(left, func(_, value string) bool {
		name, ok := strings.CutPrefix(value, secretPlaceholder)
		return ok && !hasSecret(g, name)
	})
	return left
}

// secretPlaceholder begins a value of a configuration that stands for a secret.
const secretPlaceholder = "secret://"

func hasSecret(g capability.Grant, name string) bool {
	return slices.ContainsFunc(g.Secrets, func(s capability.SecretRule) bool { return s.Name == name })
}
