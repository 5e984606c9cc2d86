package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"strings"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/store"
)

// What can be decided about a module, as the history has it.
const (
	actionGrant   = "grant"
	actionRevoke  = "revoke"
	actionApprove = "approve"
)

// decision is what somebody decided about a module, on its way to the policy file.
type decision struct {
	Action string `json:"action"`
	Module string `json:"module"`
	// Digest and Definitions are those of the version that was looked at.
	Digest      string `json:"digest"`
	Definitions string `json:"definitions"`
	// Policy is a policy of this module alone, with what it is granted from now on.
	// Empty, an approval leaves the grant and a revocation takes all of it away.
	Policy string `json:"policy,omitempty"`
	// Config is what it reads from now on; nil, which is not the same as nothing,
	// leaves that as it is.
	Config map[string]string `json:"config"`
	// Pin: nothing is written to the policy, and later versions are measured by this
	// one, since the module asks for nothing.
	Pin bool `json:"pin,omitempty"`
	// Forget: the values that are kept under the module's name go.
	Forget bool `json:"forget,omitempty"`
	// Seen is the markOf what was decided before, as far as whoever decides knew.
	Seen string `json:"seen"`
	// Unattended: nobody was asked.
	Unattended bool `json:"unattended,omitempty"`
}

var (
	// errMeanwhile says that a decision was made against something else.
	errMeanwhile = errors.New("it is not what you looked at any more")
	// errUnattended says that a person has to decide.
	errUnattended = fmt.Errorf("%w: a person has to decide", tool.ErrDenied)
)

// markOf identifies what a policy says about one module.
func markOf(e capability.Entry) (string, error) {
	e.Line = 0
	raw, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

func (d decision) binding() capability.Binding {
	return capability.Binding{Digest: d.Digest, Definitions: d.Definitions}
}

// check refuses what no command sends.
func (d decision) check() error {
	switch {
	case d.Action != actionGrant && d.Action != actionRevoke && d.Action != actionApprove:
		return fmt.Errorf("action %s: there are %s, %s, %s", quoted(d.Action), actionGrant, actionRevoke, actionApprove)
	case d.Action == actionGrant && d.Policy == "":
		return errors.New("a grant that does not say what is granted")
	case d.Action == actionApprove && (d.Policy != "" || d.Config != nil || d.Forget):
		return errors.New("an approval changes no grant")
	case d.Pin && (d.Action != actionApprove || d.Definitions == ""):
		return errors.New("a version is accepted by an approval that says what it is")
	case d.Digest == "" && d.Action != actionRevoke: // what is left is bound as it was
		return errors.New("a decision is about bytes: no digest")
	}
	return nil
}

// edit changes the text of a policy as was decided, if what was decided before is
// still what it was.
func (d decision) edit(file string, text []byte) ([]byte, error) {
	now, err := capability.Parse(file, text)
	if err != nil {
		return nil, err
	}
	entry, _ := now.Entry(d.Module)
	mark, err := markOf(entry)
	switch {
	case err != nil:
		return nil, err
	case mark != d.Seen:
		return nil, hinted(fmt.Errorf("%s: %w: somebody else decided meanwhile", quoted(d.Module), errMeanwhile), "look at it again")
	case d.Pin:
		return text, nil
	case d.Action == actionApprove:
		return capability.Approve(file, text, d.Module, d.binding())
	case d.Policy == "":
		if text, err = capability.Revoke(file, text, d.Module); err != nil || d.Config == nil {
			return text, err
		}
		return capability.SetConfig(file, text, d.Module, d.Config)
	}
	given, err := capability.Parse(d.Module, []byte(d.Policy))
	if err != nil {
		return nil, fmt.Errorf("%s: this cannot be granted: %s", quoted(d.Module), findingOf(err))
	}
	next, ok := given.Entry(d.Module)
	if names := given.Modules(); !ok || len(names) != 1 || !next.Decided {
		return nil, fmt.Errorf("a decision about %s that is about something else", quoted(d.Module))
	}
	return d.rewrite(file, text, entry.Config, next.Grant)
}

// rewrite sets grant and configuration. A placeholder in the configuration needs
// its secret in the grant, so what goes does so before, and what comes after.
func (d decision) rewrite(file string, text []byte, config map[string]string, grant capability.Grant) (_ []byte, err error) {
	if d.Config != nil {
		stays := map[string]string{}
		for key, value := range config {
			if d.Config[key] == value {
				stays[key] = value
			}
		}
		if text, err = capability.SetConfig(file, text, d.Module, stays); err != nil {
			return nil, err
		}
	}
	if text, err = capability.SetGrant(file, text, d.Module, d.binding(), grant); err != nil || d.Config == nil {
		return text, err
	}
	return capability.SetConfig(file, text, d.Module, d.Config)
}

// who made the decision, for the history: the user of this machine, and whether
// there was a person at a terminal, as far as we were told.
func (d decision) who() string {
	how := "terminal"
	if d.Unattended {
		how = "unattended"
	}
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = cmp.Or(u.Username, u.Uid)
	}
	return oneLine(name) + " (" + how + ")"
}

// decide puts a decision into the policy file, and that in force.
func (a *App) decide(ctx context.Context, d decision) error {
	if d.Unattended && !a.cfg.AllowUnattended {
		return hinted(fmt.Errorf("%w: the hutch that runs was not started with --%s", errUnattended, flagUnattended),
			"run it in a terminal, without --%s", flagYes)
	}
	if err := d.check(); err != nil {
		return err
	}
	if err := a.hasRead(d); err != nil {
		return err
	}
	return a.changePolicy(ctx, d.change(ctx, a.db))
}

func (d decision) change(ctx context.Context, db *store.DB) policyChange {
	return policyChange{d.who(), d.Action, d.Module, d.binding(), d.editIn(ctx, db), d.Pin}
}

// hasRead refuses a decision about a version that this hutch does not know yet: the
// one that serves would stop before there is another.
func (a *App) hasRead(d decision) error {
	for _, m := range a.modules.Modules() {
		if m.Name == d.Module && m.Status != tool.Rejected && m.Digest != d.Digest && d.Action != actionRevoke {
			return hinted(fmt.Errorf("%s: %w: the hutch that runs has not read this version of the file", quoted(d.Module), errMeanwhile), "try again in a moment")
		}
	}
	return nil
}

// asFlag makes the findings of a grant that came from flags errors about those.
func asFlag(flag, value string, err error) error {
	var bad *capability.PolicyError
	if !errors.As(err, &bad) || len(bad.Findings) == 0 {
		return usagef("--%s %s: %w", flag, quoted(value), err)
	}
	f := bad.Findings[0]
	return usagef("--%s %s: %s", flag, quoted(value), strings.TrimSuffix(f.Found+": "+f.Allowed, ": "))
}
