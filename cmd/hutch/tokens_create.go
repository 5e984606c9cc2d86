package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/access"
)

const (
	flagPrincipal = "principal"
	flagScope     = "scope"
	flagExpires   = "expires"
)

func tokensCreateCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "create",
		Usage:     "make a token and show it, this once",
		UsageText: "hutch tokens create NAME [flags]",
		Flags: append(tokenFlags(),
			&cli.StringFlag{Name: flagPrincipal, Usage: "`NAME`: who is accountable for what comes with it (default: the name of the token)"},
			&cli.StringSliceFlag{Name: flagScope, Usage: "`SCOPE`: what it may do besides; may be repeated (default: none)"},
			expiresFlag(),
			jsonFlag("the token and what is kept of it")),
		Action: func(c *cli.Context) error { return runTokensCreate(c, p) },
		Description: `The token is the one line on standard output. Nothing but a hash of it is kept.
What tools keep, threads and what is counted belong to a principal, and several tokens may have one. What
was there before the first token belongs to the principal local: --principal local goes on with it.

Every token may call the tools and talk to agents. Scopes are
  admin          see how hutch does: /metrics
  threads:read   read the threads of all principals
and for the tracker
  ` + strings.Join(wrapped(strings.Join(trackerScopes(), ", "), 96), "\n  ") + `
No scope includes another. "hutch tracker token create" makes a token with what a member of the tracker needs.

examples:
  $ hutch tokens create alice
  $ hutch tokens create ci --principal alice --expires 90d
  $ hutch tokens create prometheus --scope admin > /etc/prometheus/hutch.token`,
	}
}

func expiresFlag() cli.Flag {
	return &cli.StringFlag{Name: flagExpires, Usage: "`WHEN`: 12h, 90d, or the day it ends, such as 2030-12-31 (default: never)"}
}

// trackerScopes are those that are not explained one by one.
func trackerScopes() (names []string) {
	for _, s := range access.Scopes() {
		if s != access.Admin && s != access.ThreadsRead {
			names = append(names, s)
		}
	}
	return names
}

// createdToken is what "hutch tokens create --json" prints.
type createdToken struct {
	listedToken
	Token string `json:"token"`
}

func runTokensCreate(c *cli.Context, p program) error {
	name, cfg, err := tokenArgument(c, p)
	if err != nil {
		return err
	}
	return createToken(c, cfg, name, cmp.Or(c.String(flagPrincipal), name), c.StringSlice(flagScope))
}

// createToken makes a token, keeps its hash and shows it.
func createToken(c *cli.Context, cfg Config, name, principal string, scopes []string) error {
	if err := access.CheckScopes(scopes); err != nil {
		return usagef("--%s: %w", flagScope, err)
	}
	if err := access.CheckName(principal); err != nil {
		return usagef("--%s %w", flagPrincipal, err)
	}
	expires, err := parseExpiry(c.String(flagExpires), time.Now())
	if err != nil {
		return usagef("--%s %w", flagExpires, err)
	}
	t, text, err := access.New(name, principal, scopes, time.Now(), expires)
	if err != nil {
		return usagef("%w", err)
	}
	alone := func(k *access.Keys) error { return k.Add(c.Context, t) }
	if err := cfg.changeTokens(c.Context, tokensPath, t, alone); err != nil {
		return tokenError(name, err)
	}
	say := &voice{w: c.App.ErrWriter}
	say.line("this is the only time that it is shown")
	if othersRead(c.App.Writer) {
		say.line("warning: it goes into a file that others can read: chmod 600 it, as hutch takes a token from no other")
	}
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, createdToken{listed(t), text})
	}
	_, err = io.WriteString(c.App.Writer, text+"\n")
	return err
}

// othersRead reports that what is written goes into a file that is not its owner's alone.
func othersRead(w io.Writer) bool {
	if d, ok := w.(*drain); ok {
		w = d.w
	}
	f, ok := w.(*os.File)
	if !ok || runtime.GOOS == "windows" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0
}

// maxExpiry is the longest that a token may be good if it ends at all.
const maxExpiry = 10 * 366 * 24 * time.Hour

// parseExpiry reads when a token ends: after some time, or at the end of a day. Nothing is
// never, which is the zero time.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.ParseInLocation(time.DateOnly, text, now.Location())
	if err == nil {
		at = at.AddDate(0, 0, 1)
	} else {
		days, isDays := strings.CutSuffix(text, "d")
		n, err := strconv.ParseUint(days, 10, 16)
		d := time.Duration(n) * 24 * time.Hour
		if !isDays {
			d, err = time.ParseDuration(text)
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("%s: a time such as 12h or 90d, or a day such as 2030-12-31", quoted(text))
		}
		at = now.Add(d)
	}
	if at.Before(now.Add(time.Minute)) || at.After(now.Add(maxExpiry)) {
		return time.Time{}, fmt.Errorf("%s: allowed are 1m to ten years from now", quoted(text))
	}
	return at, nil
}
