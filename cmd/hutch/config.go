package main

import (
	"cmp"
	"errors"
	"net"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
)

// Config is what hutch was told by its flags, its environment and its
// configuration file, in this order of precedence.
type Config struct {
	// Tools are the folders with modules, as they were given.
	Tools []string
	// toolsFrom says who named them: a flag, a variable, a file; empty if nobody.
	toolsFrom string
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
	// Addr is where serve listens: loopback host and port.
	Addr string
	// addrFrom says who chose Addr, as toolsFrom does.
	addrFrom string
	// RequireJail runs modules in fully jailed workers or not at all.
	RequireJail bool
	// Limits bound calls, requests and workers.
	Limits Limits
}

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
)

// folderFlags are the flags of every command that looks at folders of modules.
func folderFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: flagTools, Usage: "`DIR`: folder with modules; may be repeated (default: ./tools; env HUTCH_TOOLS)"},
		&cli.StringFlag{Name: flagPolicy, Usage: "`FILE`: what is granted to which module (default: policy.yaml in the state folder; env HUTCH_POLICY)"},
		&cli.BoolFlag{Name: flagDev, Usage: "for authors: a module that changes needs no new decision, and none gets a secret"},
	}, stateFlags()...)
}

// stateFlags are the flags of every command that runs a module.
func stateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagState, Usage: "`DIR`: folder for caches and kept modules (default: hutch in your state folder; env HUTCH_STATE)"},
		&cli.BoolFlag{Name: flagJail, Usage: "run no module where the system cannot confine its process (default: warn; env HUTCH_REQUIRE_JAIL)"},
		&cli.StringFlag{Name: flagConfig, Usage: "`FILE`: configuration; read only if named (default: none; env HUTCH_CONFIG)"},
	}
}

func addrFlag() cli.Flag {
	return &cli.StringFlag{Name: flagAddr, Usage: "`HOST:PORT`: loopback address to listen on (default: " + defaultAddr + "; env HUTCH_ADDR)"}
}

func jsonFlag(what string) cli.Flag {
	return &cli.BoolFlag{Name: flagJSON, Usage: "print " + what + " as JSON"}
}

func timeoutFlag() cli.Flag {
	return &cli.StringFlag{Name: flagTimeout, Usage: "`DURATION`: wall time of the call, 1ms to 1h (default: 30s; env HUTCH_LIMIT_TIMEOUT)"}
}

// loadConfig gathers the configuration of a command. Errors are of kind
// errUsage and name where the wrong value stands.
func loadConfig(c *cli.Context, p program) (Config, error) {
	limits, err := defaultLimits()
	if err != nil {
		return Config{}, err
	}
	cfg := Config{Tools: []string{defaultTools}, Addr: defaultAddr, Limits: limits}
	file := p.env(envConfig)
	if c.IsSet(flagConfig) {
		file = c.String(flagConfig)
	}
	if file != "" {
		if err := readConfigFile(file, &cfg); err != nil {
			return Config{}, err
		}
	}
	if err := cfg.fromEnv(p); err != nil {
		return Config{}, err
	}
	if err := cfg.fromFlags(c); err != nil {
		return Config{}, err
	}
	return cfg, cfg.finish(p.env)
}

// loadListenConfig is loadConfig for a command that uses the address.
func loadListenConfig(c *cli.Context, p program) (Config, error) {
	cfg, err := loadConfig(c, p)
	if err == nil {
		err = checkAddr(cfg.addrFrom, cfg.Addr)
	}
	return cfg, err
}

func (cfg *Config) fromFlags(c *cli.Context) error {
	if c.IsSet(flagTools) {
		cfg.Tools, cfg.toolsFrom = c.StringSlice(flagTools), "--"+flagTools
	}
	if c.IsSet(flagState) {
		if cfg.State = c.String(flagState); cfg.State == "" {
			return usagef("--state: empty")
		}
	}
	if c.IsSet(flagPolicy) {
		cfg.Policy, cfg.policyFrom = c.String(flagPolicy), "--"+flagPolicy
	}
	cfg.Dev = cfg.Dev || c.Bool(flagDev)
	if c.IsSet(flagJail) {
		cfg.RequireJail = c.Bool(flagJail)
	}
	if c.IsSet(flagAddr) {
		cfg.Addr, cfg.addrFrom = c.String(flagAddr), "--"+flagAddr
	}
	if c.IsSet(flagTimeout) {
		if err := cfg.Limits.set(flagTimeout, c.String(flagTimeout)); err != nil {
			return usagef("--%s: %w", flagTimeout, err)
		}
	}
	return nil
}

// finish checks what no single source can and fills in what depends on the
// machine.
func (cfg *Config) finish(env func(string) string) error {
	for i, dir := range cfg.Tools {
		if dir == "" {
			return usagef("%s: an empty folder name", cfg.toolsFrom)
		}
		var err error
		if cfg.Tools[i], err = expandHome(dir, env); err != nil {
			return usagef("%s %s: %w", cfg.toolsFrom, quoted(dir), err)
		}
	}
	if cfg.stateNamed = cfg.State != ""; !cfg.stateNamed {
		dir, err := defaultState(env)
		if err != nil {
			return usagef("%w", err).withHint("name a folder with --state DIR")
		}
		cfg.State = dir
	}
	dir, err := expandHome(cfg.State, env)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return usagef("state %s: %w", quoted(cfg.State), err)
	}
	cfg.State = dir
	if cfg.Policy == "" {
		if cfg.policyFrom != "" {
			return usagef("%s: empty", cfg.policyFrom)
		}
		cfg.Policy = state{dir}.policy()
	}
	if cfg.Policy, err = filepath.Abs(cfg.Policy); err != nil {
		return usagef("policy %s: %w", quoted(cfg.Policy), err)
	}
	return cfg.checkPolicyPlace()
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

// checkAddr accepts host:port with a loopback host. hutch has no tokens yet, so
// whoever reaches the address may call every tool. from says where addr stands.
func checkAddr(from, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = parsePort(port)
	}
	if err != nil {
		var bad *net.AddrError
		if errors.As(err, &bad) {
			err = errors.New(bad.Err)
		}
		return usagef("%s %s: %w", from, quoted(addr), err).withHint("write HOST:PORT, such as %s", defaultAddr)
	}
	if !isLoopback(host) {
		return usagef("%s %s: not a loopback address, and without tokens anyone who reaches it could call every tool", from, quoted(addr)).
			withHint("use 127.0.0.1:%s, and a tunnel such as ssh -L to reach it from elsewhere", port)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
