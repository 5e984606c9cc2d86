package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/hutch-run/hutch/host/secrets"
)

func secretsCommand(p program) *cli.Command {
	return &cli.Command{
		Name:        "secrets",
		Usage:       "set, list and remove the secrets that tools may use and never see",
		UsageText:   "hutch secrets COMMAND [flags] [arguments]",
		Subcommands: []*cli.Command{secretsSetCommand(p), secretsListCommand(p), secretsRemoveCommand(p)},
		Description: `A tool never holds a secret: hutch puts it into the requests that the policy grants it for, and takes
it out of whatever comes back. A hutch that runs uses what is set here from its next call on.

They are looked for in the environment (HUTCH_SECRET_NAME), in a file of mode 0600, and in one encrypted
with age (age-encryption.org), in this order. The encrypted file is used once something opens it:
  an identity    a file with keys, as age-keygen writes it: --identity FILE, or secrets.identity in the
                 configuration. What it protects is a copy of the state folder without it, such as a
                 backup: keep it elsewhere
  a passphrase   in the variable HUTCH_SECRETS_PASSPHRASE. Reading and writing take a second each
Whoever runs hutch needs the same one, so a serve that is started by itself has it in its configuration.

examples:
  $ hutch secrets set github_token
  $ pass show github | hutch secrets set github_token
  $ hutch secrets list
  $ hutch secrets remove github_token`,
	}
}

// secretFlags are the flags of the commands that look at secrets.
func secretFlags() []cli.Flag {
	return append(someFlags(flagPolicy, flagState, flagConfig), identityFlag())
}

const flagEncrypt = "encrypt"

func secretsSetCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "set",
		Usage:     "set a secret, or replace it",
		UsageText: "hutch secrets set NAME [flags]",
		Flags: append(secretFlags(), jsonFlag("where it is"), &cli.BoolFlag{Name: flagEncrypt,
			Usage: "keep it in the encrypted file alone; makes the file that --identity names if there is none yet"}),
		Action: func(c *cli.Context) error { return runSecretsSet(c, p) },
		Description: `The value is typed where it is not shown, or read from standard input if that is no terminal; one line
break at its end is taken off. It is never an argument, which other processes could read.

It goes into the file that has the secret already, else into the encrypted one if something opens that
(see "hutch help secrets"), else into the plain one. --encrypt moves it into the encrypted one.

examples:
  $ hutch secrets set github_token
  $ hutch secrets set github_token < token.txt
  $ hutch secrets set github_token --encrypt --identity ~/.config/hutch/identity`,
	}
}

// keeper is what the commands about secrets work on.
type keeper struct {
	cfg   Config
	vault *secrets.Vault
	say   *voice
}

// openKeeper opens the secrets of a command's configuration. Files that are wrong
// are no error yet.
func openKeeper(c *cli.Context, p program) (keeper, error) {
	cfg, err := loadJoined(c, p)
	if err != nil {
		return keeper{}, err
	}
	k := keeper{cfg: cfg, say: &voice{w: c.App.ErrWriter}}
	if k.vault, err = openVault(cfg, p, slog.New(slog.DiscardHandler)); err != nil {
		return keeper{}, err
	}
	if cfg.sealed() {
		k.say.line("warning: encrypted secrets are not used: nothing opens %s", quoted(cfg.Secrets.AgeFile))
		k.say.line("hint: name what opens it with --%s FILE", flagIdentity)
	}
	return k, nil
}

func runSecretsSet(c *cli.Context, p program) error {
	if err := wantSecretName(c, "set"); err != nil {
		return err
	}
	name := c.Args().First()
	k, err := openKeeper(c, p)
	if err != nil {
		return err
	}
	if c.Bool(flagEncrypt) && !k.cfg.Secrets.opened() {
		return usagef("--%s: nothing would open the encrypted file", flagEncrypt).
			withHint("name an identity with --%s FILE, which is made if it is not there, or set %s", flagIdentity, envPassphrase)
	}
	if _, err := openState(k.cfg.State); err != nil {
		return err
	}
	value, err := k.readValue(c.Context, p.stdin, name)
	if err != nil {
		return err
	}
	put := k.vault.Set
	if c.Bool(flagEncrypt) {
		if err := k.makeIdentity(p); err != nil {
			return err
		}
		put = k.vault.Encrypt
	}
	if err := put(name, value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	source, _ := keptIn(k.vault.Names(), name)
	if err := tellSecret(c, secretChange{Name: name, Set: true, Source: source}, fmt.Sprintf("set %s in the %s\n", name, source)); err != nil {
		return err
	}
	if k.compareWithOwner(c.Context, name, source); len(k.users(p)[name]) == 0 {
		k.say.line("hint: no module may use it yet: hutch tools grant MODULE --secret %s", name)
	}
	return nil
}

// wasAValue is what to do for who typed a secret where it is seen.
const wasAValue = "if one was a value, replace it where it is from; then: hutch secrets set NAME"

// wantSecretName refuses what is no name, and never repeats it: it may be a value.
func wantSecretName(c *cli.Context, does string) error {
	if c.NArg() > 1 {
		return usagef("secrets %s takes the NAME of a secret alone: %d arguments given, which other processes can read and the shell remembers", does, c.NArg()).
			withHint("%s", wasAValue)
	}
	if err := wantArgs(c, 1, 1, "the NAME of a secret"); err != nil {
		return err
	}
	if err := secrets.CheckName(c.Args().First()); err != nil {
		if strings.Contains(c.Args().First(), "=") {
			return usagef("%w: a value behind a = could be read by other processes, and the shell remembers it", err).withHint("%s", wasAValue)
		}
		return usagef("%w", err)
	}
	return nil
}

// makeIdentity makes the identity that was named if there is none, and nothing yet
// that another one has to open. It does so when there is a value to be kept.
func (k *keeper) makeIdentity(p program) (err error) {
	f := k.cfg.Secrets
	if f.AgeIdentity == "" || isThere(f.AgeIdentity) || isThere(f.AgeFile) {
		return nil
	}
	if err := secrets.NewIdentity(f.AgeIdentity); err != nil {
		return err
	}
	k.say.line("made the identity %s, which opens the encrypted secrets: keep it elsewhere than copies of them", quoted(f.AgeIdentity))
	k.vault, err = openVault(k.cfg, p, slog.New(slog.DiscardHandler))
	return err
}

// secretChange is what "hutch secrets set --json" and "remove --json" print.
type secretChange struct {
	Name   string         `json:"name"`
	Set    bool           `json:"set"`
	Source secrets.Source `json:"source"` // empty if it is not set
}

func tellSecret(c *cli.Context, change secretChange, text string) error {
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, change)
	}
	_, err := io.WriteString(c.App.Writer, text)
	return err
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// readValue reads a secret: what is typed at a terminal, else all of standard input.
func (k keeper) readValue(ctx context.Context, in io.Reader, name string) (string, error) {
	if f, ok := in.(*os.File); ok && isTerminal(f) {
		k.say.write("hutch: value of " + name + ", not shown: ")
		typed, err := typeHidden(ctx, f)
		k.say.write("\n")
		if err == nil && typed == "" {
			err = errors.New("nothing was typed")
		}
		return typed, err
	}
	raw, err := io.ReadAll(io.LimitReader(in, secrets.MaxValue+3))
	if err != nil {
		return "", fmt.Errorf("standard input: %w", err)
	}
	value, cut := bytes.CutSuffix(raw, []byte("\n"))
	if value = bytes.TrimSuffix(value, []byte("\r")); cut {
		k.say.line("took the line break off the end of the value")
	}
	switch {
	case len(value) == 0:
		return "", hinted(errors.New("standard input: empty, which is as good as no secret"), "hutch secrets remove %s takes one away", name)
	case len(value) > secrets.MaxValue:
		return "", fmt.Errorf("standard input: more than %d bytes, which no secret may have", secrets.MaxValue)
	}
	return string(value), nil
}

// typeHidden reads a line that the terminal does not show. An interrupt gives the
// terminal back as it was.
func typeHidden(ctx context.Context, f *os.File) (string, error) {
	fd := int(f.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type answer struct {
		text []byte
		err  error
	}
	typed := make(chan answer, 1)
	go func() {
		defer func() { _ = recover() }() // nobody waits for it any more
		text, err := term.ReadPassword(fd)
		typed <- answer{text, err}
	}()
	select {
	case a := <-typed:
		return strings.TrimSpace(string(a.text)), a.err
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), term.Restore(fd, before))
	}
}

func secretsRemoveCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "remove",
		Usage:     "take a secret away",
		UsageText: "hutch secrets remove NAME [flags]",
		Flags:     append(secretFlags(), jsonFlag("what was removed")),
		Action:    func(c *cli.Context) error { return runSecretsRemove(c, p) },
		Description: `It is taken out of all files. A hutch that runs refuses the next call that needs it; its value is still
taken out of what tools say until that hutch ends.

examples:
  $ hutch secrets remove github_token`,
	}
}

func runSecretsRemove(c *cli.Context, p program) error {
	if err := wantSecretName(c, "remove"); err != nil {
		return err
	}
	k, err := openKeeper(c, p)
	if err != nil {
		return err
	}
	name := c.Args().First()
	err = k.vault.Remove(name)
	if errors.Is(err, secrets.ErrUnset) {
		return hinted(err, "hutch secrets list")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := tellSecret(c, secretChange{Name: name}, "removed "+name+"\n"); err != nil {
		return err
	}
	k.compareWithOwner(c.Context, name, "")
	if users := k.users(p)[name]; len(users) > 0 {
		k.say.line("hint: the policy still lets %s use it; their requests are refused until it is set again", strings.Join(users, ", "))
	}
	return nil
}
