package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
)

// Names of the variables that are flags too.
const (
	envTools  = "HUTCH_TOOLS"
	envState  = "HUTCH_STATE"
	envAddr   = "HUTCH_ADDR"
	envConfig = "HUTCH_CONFIG"
	envLog    = "HUTCH_LOG"
	envJail   = "HUTCH_REQUIRE_JAIL"
	envPolicy = "HUTCH_POLICY"
	// envLimit starts the name of a limit, in upper case.
	envLimit = "HUTCH_LIMIT_"
)

var envNames = []string{envTools, envState, envAddr, envConfig, envLog, envJail, envPolicy}

// foreignEnv are variables that start like ours and are not: those that
// Kubernetes sets for a service called hutch, and those of our own tests.
var foreignEnv = regexp.MustCompile(`^HUTCH_(REQUIRE|TEST_.*|(.*_)?SERVICE_(HOST|PORT.*)|(.*_)?PORT(_[0-9]+_.*)?)$`)

// fromEnv takes what the environment says. A variable that means nothing is
// refused: it is a misspelt one, and what it was meant to set, a limit for one,
// would silently not hold.
func (cfg *Config) fromEnv(p program) error {
	if v := p.env(envTools); v != "" {
		cfg.Tools, cfg.toolsFrom = filepath.SplitList(v), envTools
	}
	if v := p.env(envState); v != "" {
		cfg.State = v
	}
	if v := p.env(envPolicy); v != "" {
		cfg.Policy, cfg.policyFrom = v, envPolicy
	}
	if v := p.env(envAddr); v != "" {
		cfg.Addr, cfg.addrFrom = v, envAddr
	}
	if v := p.env(envJail); v != "" {
		on, err := strconv.ParseBool(v)
		if err != nil {
			return usagef("%s: %s is neither true nor false", envJail, quoted(v))
		}
		cfg.RequireJail = on
	}
	environ := slices.Sorted(slices.Values(p.environ()))
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" || !strings.HasPrefix(name, "HUTCH_") || slices.Contains(envNames, name) || strings.HasPrefix(name, secrets.EnvPrefix) || foreignEnv.MatchString(name) {
			continue
		}
		key, ok := strings.CutPrefix(name, envLimit)
		if !ok || !slices.Contains(limitNames(), strings.ToLower(key)) {
			return unknownVariable(name)
		}
		if err := cfg.Limits.set(strings.ToLower(key), value); err != nil {
			return usagef("%s: %w", name, err)
		}
	}
	return nil
}

// unknownVariable compares what comes after HUTCH_, which all have.
func unknownVariable(name string) error {
	const ours = "HUTCH_"
	var known []string
	for _, name := range envNames {
		known = append(known, strings.TrimPrefix(name, ours))
	}
	for _, key := range limitNames() {
		known = append(known, strings.TrimPrefix(envLimit, ours)+strings.ToUpper(key))
	}
	rest := strings.TrimPrefix(name, ours)
	like := nearest(known, rest, 3)
	if limit := strings.TrimPrefix(envLimit, ours) + rest; slices.Contains(known, limit) {
		like = limit
	}
	err := usagef("%s: no such variable", abi.Cut(name, 80))
	if like != "" {
		return err.withHint("did you mean %s?", ours+like)
	}
	return err.withHint("there are, after %s, %s", ours, strings.Join(known, ", "))
}
