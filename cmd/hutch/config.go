package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/urfave/cli/v2"
)

// Config is what hutch was told by its flags, its environment and its
// configuration file, in this order of precedence.
type Config struct {
	// Tools are the folders with modules, as they were given.
	Tools []string
	// State is the folder for caches and kept modules, absolute.
	State string
	// stateNamed: somebody chose State.
	stateNamed bool
	// Addr is where serve listens: loopback host and port.
	Addr string
	// Limits bound calls, requests and workers.
	Limits Limits
}

// Limits are the limits that an operator may set. A zero field means the
// default given in limitKeys.
type Limits struct {
	Call abi.Limits
	// Body is the largest accepted HTTP request body, in bytes.
	Body int64
	// Connections is how many HTTP connections may be open at once.
	Connections int
	// Workers is how much memory all worker processes may use together, in
	// bytes; idle ones end first.
	Workers int64
}

// limitKey is one limit as a configuration names it.
type limitKey struct {
	name string
	// fallback is the default as a person would write it.
	fallback string
	// means says what is bounded; help shows it.
	means string
	set   func(l *Limits, text string) error
}

// limitKeys are the keys below "limits" in a configuration file and, in upper
// case after HUTCH_LIMIT_, in the environment.
var limitKeys = []limitKey{
	{"memory", "64MiB", "linear memory of one call", func(l *Limits, s string) error {
		return setSize(&l.Call.MemoryBytes, s, abi.PageBytes, 4<<30)
	}},
	{"timeout", "30s", "wall time of one call", func(l *Limits, s string) error {
		return setDuration(&l.Call.Wall, s)
	}},
	{"compile", "30s", "wall time of compiling one module", func(l *Limits, s string) error {
		return setDuration(&l.Call.Compile, s)
	}},
	{"input", "4MiB", "arguments of one call", func(l *Limits, s string) error {
		return setSize(&l.Call.InputBytes, s, 1<<10, 1<<30)
	}},
	{"output", "1MiB", "result of one call", func(l *Limits, s string) error {
		return setSize(&l.Call.OutputBytes, s, 1<<10, 1<<30)
	}},
	{"log_lines", "100", "log lines of one call", func(l *Limits, s string) error {
		return setCount(&l.Call.LogLines, s, 1_000_000)
	}},
	{"log_line", "8KiB", "one log line", func(l *Limits, s string) error {
		return setSize(&l.Call.LogLineBytes, s, 1, 1<<20)
	}},
	{"host_calls", "1000", "gated operations of one call", func(l *Limits, s string) error {
		return setCount(&l.Call.HostCalls, s, 1_000_000)
	}},
	{"body", "4MiB", "body of one HTTP request", func(l *Limits, s string) error {
		return setSize(&l.Body, s, 1<<10, 1<<30)
	}},
	{"connections", "256", "open HTTP connections", func(l *Limits, s string) error {
		return setCount(&l.Connections, s, 100_000)
	}},
	{"workers", "1GiB", "memory of all workers together", func(l *Limits, s string) error {
		return setSize(&l.Workers, s, 16<<20, 1<<40)
	}},
}

// defaultLimits returns the limits of someone who configured nothing.
func defaultLimits() (Limits, error) {
	var l Limits
	for _, key := range limitKeys {
		if err := key.set(&l, key.fallback); err != nil {
			return Limits{}, fmt.Errorf("default of %s: %w", key.name, err)
		}
	}
	return l, nil
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
)

// folderFlags are the flags of every command that looks at folders of modules.
func folderFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: flagTools, Usage: "`DIR`: folder with modules; may be repeated (default: ./tools; env HUTCH_TOOLS)"},
	}, stateFlags()...)
}

// stateFlags are the flags of every command that runs a module.
func stateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagState, Usage: "`DIR`: folder for caches and kept modules (default: hutch in your state folder; env HUTCH_STATE)"},
		&cli.StringFlag{Name: flagConfig, Usage: "`FILE`: configuration; read only if named (default: none; env HUTCH_CONFIG)"},
	}
}

func addrFlag() cli.Flag {
	return &cli.StringFlag{Name: flagAddr, Usage: "`HOST:PORT`: loopback address to listen on (default: " + defaultAddr + "; env HUTCH_ADDR)"}
}

func jsonFlag(what string) cli.Flag {
	return &cli.BoolFlag{Name: flagJSON, Usage: "print " + what + " as JSON"}
}

// loadConfig gathers the configuration of a command. Errors are of kind
// errUsage and name where the wrong value stands.
func loadConfig(c *cli.Context, p program) (Config, error) {
	limits, err := defaultLimits()
	if err != nil {
		return Config{}, err
	}
	cfg := Config{Tools: []string{defaultTools}, Addr: defaultAddr, Limits: limits}
	file := p.env("HUTCH_CONFIG")
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

func (cfg *Config) fromEnv(p program) error {
	if v := p.env("HUTCH_TOOLS"); v != "" {
		cfg.Tools = filepath.SplitList(v)
	}
	if v := p.env("HUTCH_STATE"); v != "" {
		cfg.State = v
	}
	if v := p.env("HUTCH_ADDR"); v != "" {
		cfg.Addr = v
	}
	for _, entry := range p.environ() {
		name, value, _ := strings.Cut(entry, "=")
		key, ok := strings.CutPrefix(name, "HUTCH_LIMIT_")
		if !ok || value == "" {
			continue
		}
		if err := cfg.Limits.set(strings.ToLower(key), value); err != nil {
			return usagef("%s: %w", name, err)
		}
	}
	return nil
}

// set sets the limit called name.
func (l *Limits) set(name, text string) error {
	for _, key := range limitKeys {
		if key.name == name {
			return key.set(l, text)
		}
	}
	return fmt.Errorf("no such limit; there are %s", strings.Join(limitNames(), ", "))
}

func limitNames() []string {
	names := make([]string, len(limitKeys))
	for i, key := range limitKeys {
		names[i] = key.name
	}
	return names
}

func (cfg *Config) fromFlags(c *cli.Context) error {
	if c.IsSet(flagTools) {
		cfg.Tools = c.StringSlice(flagTools)
	}
	if c.IsSet(flagState) {
		if cfg.State = c.String(flagState); cfg.State == "" {
			return usagef("--state: empty")
		}
	}
	if c.IsSet(flagAddr) {
		cfg.Addr = c.String(flagAddr)
	}
	return nil
}

// finish checks what no single source can and fills in what depends on the
// machine.
func (cfg *Config) finish(env func(string) string) error {
	for _, dir := range cfg.Tools {
		if dir == "" {
			return usagef("tools: an empty folder name")
		}
	}
	if err := checkAddr(cfg.Addr); err != nil {
		return err
	}
	if cfg.stateNamed = cfg.State != ""; !cfg.stateNamed {
		dir, err := defaultState(env)
		if err != nil {
			return usagef("%w", err).withHint("name a folder with --state DIR")
		}
		cfg.State = dir
	}
	dir, err := filepath.Abs(cfg.State)
	if err != nil {
		return usagef("state %s: %w", quoted(cfg.State), err)
	}
	cfg.State = dir
	return nil
}

// checkAddr accepts host:port with a loopback host. hutch has no tokens yet, so
// whoever reaches the address may call every tool.
func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		var bad *net.AddrError
		if errors.As(err, &bad) {
			err = errors.New(bad.Err)
		}
		return usagef("addr %s: %w", quoted(addr), err).withHint("write HOST:PORT, such as %s", defaultAddr)
	}
	if _, err := parsePort(port); err != nil {
		return usagef("addr %s: %w", quoted(addr), err).withHint("write HOST:PORT, such as %s", defaultAddr)
	}
	if !isLoopback(host) {
		return usagef("addr %s: not a loopback address, and without tokens anyone who reaches it could call every tool", quoted(addr)).
			withHint("use 127.0.0.1:%s, and a tunnel such as ssh -L to reach it from elsewhere", port)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// limitsHelp lists the limits for a command's help.
func limitsHelp() string {
	var b strings.Builder
	b.WriteString("limits, as HUTCH_LIMIT_KEY in the environment or below \"limits:\" in a configuration file:\n")
	for _, key := range limitKeys {
		fmt.Fprintf(&b, "  %-11s  %s (default: %s)\n", key.name, key.means, key.fallback)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
