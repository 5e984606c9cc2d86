package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/runtime/store"
)

func tokensCommand(p program) *cli.Command {
	return &cli.Command{
		Name:        "tokens",
		Usage:       "create, list and revoke the tokens that clients of serve come in with",
		UsageText:   "hutch tokens COMMAND [flags] [arguments]",
		Subcommands: []*cli.Command{tokensCreateCommand(p), tokensListCommand(p, "hutch tokens"), tokensRevokeCommand(p, "hutch tokens")},
		Description: `As long as there is none, whoever is on this machine may call what serve serves, and nobody else. As
soon as there is one, every request needs a token, but those to /healthz and /readyz, and serve may
listen on other addresses than loopback. A client sends the header Authorization: Bearer TOKEN.
A hutch that runs goes by a change at once. Standard input and output, as of hutch mcp, need no token.

examples:
  $ hutch tokens create alice
  $ hutch tokens list
  $ hutch tokens revoke alice`,
	}
}

// tokenFlags are the flags of the commands about tokens.
func tokenFlags() []cli.Flag { return someFlags(flagState, flagConfig) }

// tokensListCommand is that of a group of commands.
func tokensListCommand(p program, below string) *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "list tokens: name, principal, scopes, when they were made and used, and until when they are good",
		UsageText: below + " list [flags]",
		Flags:     append(tokenFlags(), jsonFlag("the list")),
		Action:    func(c *cli.Context) error { return runTokensList(c, p) },
		Description: `What comes last is how the token begins. The rest of it is kept nowhere. When a token was last used
is told by a hutch that runs, since it was started.

examples:
  $ ` + below + ` list
  $ ` + below + ` list --json`,
	}
}

// listedToken is one element of "hutch tokens list --json". Expires is left out of one
// that is good for ever, Used of one that was not used since the hutch that runs was started.
type listedToken struct {
	Name      string    `json:"name"`
	ID        string    `json:"id"`
	Principal string    `json:"principal"`
	Scopes    []string  `json:"scopes"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires,omitzero"`
	Expired   bool      `json:"expired"`
	Used      time.Time `json:"used,omitzero"`
}

func listed(t access.Token) listedToken {
	scopes := slices.Clone(t.Scopes)
	if scopes == nil {
		scopes = []string{}
	}
	return listedToken{t.Name, t.ID, t.Principal, scopes, t.Created, t.Expires, !t.Expires.IsZero() && !time.Now().Before(t.Expires), t.Used}
}

func runTokensList(c *cli.Context, p program) error {
	if err := wantArgs(c, 0, 0, ""); err != nil {
		return err
	}
	cfg, err := loadJoined(c, p)
	if err != nil {
		return err
	}
	all, err := lookAt(c.Context, cfg, tokensPath, func(db *store.DB) ([]access.Token, error) { return db.Tokens(c.Context) })
	if err != nil {
		return err
	}
	rows := []listedToken{}
	for _, t := range all {
		rows = append(rows, listed(t))
	}
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, rows)
	}
	if len(rows) == 0 {
		say := &voice{w: c.App.ErrWriter}
		say.line("no tokens: whoever is on this machine may call what serve serves")
		say.line("hint: hutch tokens create NAME makes one")
		return nil
	}
	return printTokens(c.App.Writer, rows)
}

func printTokens(w io.Writer, rows []listedToken) error {
	var b bytes.Buffer
	table := tabwriter.NewWriter(&b, 0, 0, tableGap, ' ', 0)
	for _, r := range rows {
		until := "no end"
		if !r.Expires.IsZero() {
			until = "until " + r.Expires.Local().Format(time.DateTime)
		}
		if r.Expired {
			until = "expired"
		}
		scopes := strings.Join(r.Scopes, ", ")
		if scopes == "" {
			scopes = "no scopes"
		}
		used := "-"
		if !r.Used.IsZero() {
			used = "used " + r.Used.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\thutch_%s_...\n", r.Name, r.Principal, scopes, r.Created.Local().Format(time.DateTime), until, used, r.ID)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// tokensRevokeCommand is that of a group of commands.
func tokensRevokeCommand(p program, below string) *cli.Command {
	return &cli.Command{
		Name:      "revoke",
		Usage:     "take a token away",
		UsageText: below + " revoke NAME [flags]",
		Flags: append(tokenFlags(), jsonFlag("what was revoked"), &cli.BoolFlag{Name: flagOpen,
			Usage: "take the last token away too: whoever is on this machine needs none then"}),
		Action: func(c *cli.Context) error { return runTokensRevoke(c, p) },
		Description: `It opens nothing any more, and requests that came with it are cut off. The last one stays, unless --open
says that no token is to be needed any more: then whoever is on this machine may call what serve serves, at
once. To replace the last one, make another first.

examples:
  $ ` + below + ` revoke alice
  $ ` + below + ` revoke alice --open`,
	}
}

const flagOpen = "open"

// revokedToken is what "hutch tokens revoke --json" prints.
type revokedToken struct {
	Name    string `json:"name"`
	Revoked bool   `json:"revoked"`
}

func runTokensRevoke(c *cli.Context, p program) error {
	name, cfg, err := tokenArgument(c, p)
	if err != nil {
		return err
	}
	open := c.Bool(flagOpen)
	alone := func(k *access.Keys) error { return k.Revoke(c.Context, name, open) }
	if err := cfg.changeTokens(c.Context, revokedPath, revocation{name, open}, alone); err != nil {
		return tokenError(name, err)
	}
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, revokedToken{name, true})
	}
	_, err = io.WriteString(c.App.Writer, "revoked "+name+"\n")
	return err
}

// tokenArgument returns the NAME that a command is about, and its configuration. What is no
// name is not repeated: it may be a token.
func tokenArgument(c *cli.Context, p program) (string, Config, error) {
	if err := wantArgs(c, 1, 1, "the NAME of a token"); err != nil {
		return "", Config{}, err
	}
	name := c.Args().First()
	if strings.HasPrefix(name, "hutch_") {
		return "", Config{}, usagef("this begins as a token does: a name is wanted").withHint("hutch tokens list tells which name a token has")
	}
	if err := access.CheckName(name); err != nil {
		return "", Config{}, usagef("name %w", err)
	}
	cfg, err := loadJoined(c, p)
	return name, cfg, err
}

// tokenError is what whoever typed a command reads.
func tokenError(name string, err error) error {
	if errors.Is(err, access.ErrUnknown) {
		return hinted(fmt.Errorf("%s: %w", name, err), "hutch tokens list")
	}
	if errors.Is(err, access.ErrLast) {
		return hinted(fmt.Errorf("%s: %w", name, err), "make another one first with \"hutch tokens create NAME\", or take it away all the same with --%s", flagOpen)
	}
	if errors.Is(err, access.ErrTaken) {
		return hinted(fmt.Errorf("%s: %w", name, err), "choose another name, or take the one before away with \"hutch tokens revoke %s\"", name)
	}
	return err
}
