package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/runtime/session"
)

// Config is what hutch was told by its flags, its environment and its
// configuration file, in this order of precedence.
type Config struct {
	// Tools are the folders with modules, as they were given.
	Tools []string
	// toolsFrom says who named them: a flag, a variable, a file; empty if nobody.
	toolsFrom string
	// followed: Tools are those of whoever owns the state folder.
	followed bool
	// State is the folder for caches and kept modules, absolute.
	State string
	// stateNamed: somebody chose State.
	stateNamed bool
	// Policy is the file that says what is granted, absolute.
	Policy string
	// policyFrom says who named it, as toolsFrom does.
	policyFrom string
	// Dev lets modules change without being decided about again, and gives no
	// secrets.
	Dev bool
	// AllowUnattended lets programs decide what is granted, without a person.
	AllowUnattended bool
	// Addr is where serve listens: host and port.
	Addr string
	// URL is how clients reach serve, if that is not what they ask for.
	URL string
	// Hosts and Origins are what requests may name besides this machine and our own.
	Hosts, Origins []string
	// TLS is what serve proves with who it is; empty if it does not.
	TLS tlsFiles
	// RequireJail runs modules in fully jailed workers or not at all.
	RequireJail bool
	// Secrets says where secrets are kept.
	Secrets secretFiles
	// Store says where what lasts is kept.
	Store storeConfig
	// Tracker says which tracker there is.
	Tracker trackerConfig
	// Telemetry says where traces and figures go.
	Telemetry telemetryConfig
	// Agents are those that answer people, the default one first: at least one.
	Agents []*agentConfig
	// Engine is what all agents share: how many runs there are, and what is kept of threads.
	Engine session.Options
	// agentsFrom is the file that has them; empty if none has.
	agentsFrom string
	// Log is the level of the log, empty for the command's own.
	Log string
	// Limits bound calls, requests and workers.
	Limits Limits
	// given says of each key where its value comes from.
	given map[string]given
}

// tlsFiles are two PEM files, both or neither.
type tlsFiles struct{ Cert, Key string }

// secretFiles says where secrets are kept, all paths absolute. AgeFile is not used
// unless it is opened by one of the last two.
type secretFiles struct {
	File, AgeFile, AgeIdentity string
	Passphrase                 secrets.Value
}

// opened reports whether something is named that opens the encrypted file.
func (f secretFiles) opened() bool { return f.AgeIdentity != "" || f.Passphrase.Reveal() != "" }

// What somebody who configured nothing gets.
const (
	defaultTools = "tools"
	defaultAddr  = "127.0.0.1:8420"
)

// Names of the flags that several commands share.
const (
	flagTools  = "tools"
	flagState  = "state"
	flagAddr   = "addr"
	flagConfig = "config"
	flagJSON   = "json"
	flagLog    = "log"
	// flagTimeout is the limit of that name, for one call.
	flagTimeout = "timeout"
	flagJail    = "require-jail"
	flagPolicy  = "policy"
	flagDev     = "dev"
	// flagIdentity is the key secrets.identity.
	flagIdentity = "identity"
	// flagUnattended is of who owns a state folder.
	flagUnattended = "allow-unattended-grants"
)

// folderFlags are the flags of every command that looks at folders of modules.
func folderFlags() []cli.Flag {
	tools := &cli.StringSliceFlag{Name: flagTools, Usage: "`DIR`: folder with modules; may be repeated (default: ./tools; env HUTCH_TOOLS)"}
	return append(append([]cli.Flag{tools}, policyFlags()...), stateFlags()...)
}

// policyFlags are the flags of every command that gives calls what is granted.
func policyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagPolicy, Usage: "`FILE`: what is granted to which module (default: policy.yaml in the state folder; env HUTCH_POLICY)"},
		&cli.BoolFlag{Name: flagDev, Usage: "for authors: a module that changes needs no new decision, and none gets a secret"},
	}
}

// stateFlags are the flags of every command that runs a module.
func stateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagState, Usage: "`DIR`: folder for caches and kept modules (default: hutch in your state folder; env HUTCH_STATE)"},
		&cli.BoolFlag{Name: flagJail, Usage: "run no module where the system cannot confine its process (default: warn; env HUTCH_REQUIRE_JAIL)"},
		&cli.StringFlag{Name: flagConfig, Usage: "`FILE`: configuration; read only if named (default: none; env HUTCH_CONFIG)"},
	}
}

// someFlags are those of folderFlags that make sense for a command.
func someFlags(names ...string) []cli.Flag {
	return slices.DeleteFunc(folderFlags(), func(f cli.Flag) bool { return !slices.Contains(names, f.Names()[0]) })
}

func unattendedFlag() cli.Flag {
	return &cli.BoolFlag{Name: flagUnattended, Usage: "let programs decide what tools may do, with hutch tools grant --yes (default: a person at a terminal does)"}
}

func addrFlag() cli.Flag {
	return &cli.StringFlag{Name: flagAddr, Usage: "`HOST:PORT`: address to listen on; one that is not loopback needs tokens (default: " + defaultAddr + "; env HUTCH_ADDR)"}
}

func identityFlag() cli.Flag {
	return &cli.StringFlag{Name: flagIdentity, Usage: "`FILE`: keys that open the encrypted secrets, as age-keygen writes them (default: none; env HUTCH_SECRETS_IDENTITY)"}
}

func jsonFlag(what string) cli.Flag {
	return &cli.BoolFlag{Name: flagJSON, Usage: "print " + what + " as JSON"}
}

func timeoutFlag() cli.Flag {
	return &cli.StringFlag{Name: flagTimeout, Usage: "`DURATION`: wall time of the call, 1ms to 1h (default: 30s; env HUTCH_LIMIT_TIMEOUT)"}
}

// loadConfig gathers the configuration of a command, and gives its log the level
// that was configured. Errors are of kind errUsage and name where the first wrong
// value stands.
func loadConfig(c *cli.Context, p program) (Config, error) {
	cfg, wrong := gatherConfig(c, p)
	if len(wrong) > 0 {
		return Config{}, tellFirst(wrong, configFile(c, p))
	}
	if cfg.Log != "" && takes(c, flagLog) {
		if err := c.Set(flagLog, cfg.Log); err != nil {
			return Config{}, err
		}
	}
	return cfg, nil
}

// takes reports whether a command has a flag.
func takes(c *cli.Context, name string) bool { return c.Value(name) != nil }

// tellFirst is the error for a command that cannot start: the first mistake, and how
// all are seen.
func tellFirst(wrong []error, file string) error {
	if len(wrong) == 1 {
		return wrong[0]
	}
	if file != "" {
		file = " " + shellWord(file)
	}
	return usagef("%w (and %d more)", wrong[0], len(wrong)-1).withHint("see all of them with \"hutch config check%s\"", file)
}

// tellAny is tellFirst where there may be nothing wrong.
func tellAny(wrong []error, file string) error {
	if len(wrong) == 0 {
		return nil
	}
	return tellFirst(wrong, file)
}

// gatherConfig takes what all sources say, and returns everything that is wrong with
// it. Each error is of kind errUsage.
func gatherConfig(c *cli.Context, p program) (Config, []error) {
	cfg, all := Config{given: map[string]given{}}, settings()
	var wrong []error
	for _, s := range all {
		if s.derived {
			continue
		}
		if err := cfg.put(s, given{[]string{s.fallback}, sourceDefault, ""}, p.env); err != nil {
			wrong = append(wrong, fmt.Errorf("default of %s: %w", s.key, err))
		}
	}
	if file := configFile(c, p); file != "" {
		wrong = append(wrong, cfg.fromFile(all, file, p.env)...)
	}
	wrong = append(wrong, cfg.fromEnv(all, p)...)
	wrong = append(wrong, cfg.fromFlags(c, all, p)...)
	if g := cfg.given[flagAddr]; takes(c, flagAddr) { // it is looked at by who uses it
		if err := checkAddr(cfg.Addr); err != nil {
			wrong = append(wrong, usagef("%s: %w", g.place(flagAddr), err))
		}
	}
	wrong = append(wrong, cfg.finish(p.env)...)
	if file := configFile(c, p); file != "" {
		if err := cfg.checkConfigPlace(file); err != nil {
			wrong = append(wrong, err)
		}
	}
	return cfg, wrong
}

// configFile is the configuration that was named, empty if none was.
func configFile(c *cli.Context, p program) string {
	if c.IsSet(flagConfig) {
		return c.String(flagConfig)
	}
	return p.env(envConfig)
}

func (cfg *Config) fromFlags(c *cli.Context, all []setting, p program) (wrong []error) {
	for _, s := range all {
		if s.flag == "" || !c.IsSet(s.flag) {
			continue
		}
		values := []string{fmt.Sprint(c.Value(s.flag))}
		if s.many {
			values = c.StringSlice(s.flag)
		}
		if err := cfg.put(s, given{values, sourceFlag, "--" + s.flag}, p.env); err != nil {
			wrong = append(wrong, usagef("--%s: %w", s.flag, err))
		}
	}
	cfg.Dev = c.Bool(flagDev)
	return wrong
}

// finish checks what no single source can and fills in what depends on the
// machine.
func (cfg *Config) finish(env func(string) string) (wrong []error) {
	if g := cfg.given[flagTools]; g.source != sourceDefault {
		cfg.toolsFrom = g.at
	}
	cfg.policyFrom = cfg.given[flagPolicy].at
	if cfg.stateNamed = cfg.State != ""; !cfg.stateNamed {
		dir, err := defaultState(env)
		if err != nil {
			return []error{usagef("%w", err).withHint("name a folder with --state DIR")}
		}
		cfg.State = dir
	}
	st := state{cfg.State}
	for _, f := range []struct {
		key, fallback string
		path          *string
	}{
		{flagState, cfg.State, &cfg.State},
		{flagPolicy, st.policy(), &cfg.Policy},
		{keySecrets, st.secrets(), &cfg.Secrets.File},
		{keyAgeFile, st.ageSecrets(), &cfg.Secrets.AgeFile},
		{keyIdentity, "", &cfg.Secrets.AgeIdentity},
		{keyStorePassword, "", &cfg.Store.PasswordFile},
		{keyTrackerToken, "", &cfg.Tracker.TokenFile},
		{keyCert, "", &cfg.TLS.Cert},
		{keyKey, "", &cfg.TLS.Key},
	} {
		*f.path = cmp.Or(*f.path, f.fallback)
		if *f.path == "" {
			continue
		}
		abs, err := filepath.Abs(*f.path)
		if err != nil {
			wrong = append(wrong, usagef("%s %s: %w", f.key, quoted(*f.path), err))
		}
		*f.path = abs
		if f.key != keyAgeFile || cfg.Secrets.opened() {
			cfg.settle(f.key, abs)
		}
	}
	return append(append(wrong, cfg.checkPlaces()...), cfg.finishAgents(env)...)
}

// checkPlaces refuses what depends on more than one value.
func (cfg *Config) checkPlaces() (wrong []error) {
	if err := cfg.checkPolicyPlace(); err != nil {
		wrong = append(wrong, err)
	}
	wrong = append(wrong, cfg.checkSecretPlaces()...)
	if cfg.Store.PasswordFile != "" && cfg.Store.URL == "" {
		wrong = append(wrong, usagef("%s: there is no %s: a password goes with its server", cfg.given[keyStorePassword].place(keyStorePassword), keyStoreURL))
	}
	if (cfg.TLS.Cert == "") != (cfg.TLS.Key == "") {
		has, lacks := keyCert, keyKey
		if cfg.TLS.Cert == "" {
			has, lacks = keyKey, keyCert
		}
		wrong = append(wrong, usagef("%s: there is no %s: a certificate goes with its key", cfg.given[has].place(has), lacks))
	}
	if cfg.Secrets.AgeIdentity != "" && cfg.Secrets.Passphrase.Reveal() != "" {
		wrong = append(wrong, usagef("%s: there is %s too, and one of them opens the encrypted secrets: take one away", cfg.given[keyIdentity].at, envPassphrase))
	}
	if cfg.Secrets.opened() {
		return wrong
	}
	if g := cfg.given[keyAgeFile]; g.at != "" {
		wrong = append(wrong, usagef("%s: nothing opens the encrypted secrets: name an identity as %s, or set %s", g.at, keyIdentity, envPassphrase))
	}
	return wrong
}

// atHome reports whether a folder is named from the home folder, as a shell does:
// in a file, a variable or behind a "=" no shell has replaced it.
func atHome(dir string) bool {
	return dir == "~" || strings.HasPrefix(dir, "~/") || strings.HasPrefix(dir, "~"+string(filepath.Separator))
}

// expandHome returns dir with the home folder in it.
func expandHome(dir string, env func(string) string) (string, error) {
	if !atHome(dir) {
		return dir, nil
	}
	home := cmp.Or(env("HOME"), env("USERPROFILE"))
	if !filepath.IsAbs(home) {
		return "", errors.New("no home folder is known: write the whole path")
	}
	return filepath.Join(home, dir[1:]), nil
}

// checkAddr accepts host:port. Whether others than this machine may reach it is up to
// whether there are tokens: see [Config.listen].
func checkAddr(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = parsePort(port)
	}
	if err != nil {
		var bad *net.AddrError
		if errors.As(err, &bad) {
			err = errors.New(bad.Err)
		}
		return hinted(fmt.Errorf("%s: %w", quoted(addr), err), "write HOST:PORT, such as %s", defaultAddr)
	}
	return nil
}
