package main

import (
	"path/filepath"
	"regexp"
	"slices"
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
	// What follows is about the listener.
	envURL           = "HUTCH_URL"
	envHosts         = "HUTCH_HOSTS"
	envOrigins       = "HUTCH_ORIGINS"
	envCert          = "HUTCH_TLS_CERT"
	envKey           = "HUTCH_TLS_KEY"
	envStoreURL      = "HUTCH_STORE_URL"
	envStorePassword = "HUTCH_STORE_PASSWORD_FILE"
	// What follows is not a secret's name behind [secrets.EnvPrefix].
	envSecrets    = "HUTCH_SECRETS_FILE"
	envAgeFile    = "HUTCH_SECRETS_AGE_FILE"
	envIdentity   = "HUTCH_SECRETS_IDENTITY"
	envPassphrase = "HUTCH_SECRETS_PASSPHRASE"
	// envLimit starts the name of a limit, in upper case.
	envLimit = "HUTCH_LIMIT_"
)

// foreignEnv are variables that start like ours and are not: those that
// Kubernetes sets for a service called hutch, and those of our own tests.
var foreignEnv = regexp.MustCompile(`^HUTCH_(REQUIRE|TEST_.*|(.*_)?SERVICE_(HOST|PORT.*)|(.*_)?PORT(_[0-9]+_.*)?)$`)

// fromEnv takes what the environment says. A variable that means nothing is
// refused: it is a misspelt one, and what it was meant to set, a limit for one,
// would silently not hold.
func (cfg *Config) fromEnv(all []setting, p program) (wrong []error) {
	known := map[string]bool{envConfig: true}
	for _, s := range all {
		if s.env == "" {
			continue
		}
		known[s.env] = true
		v := p.env(s.env)
		if v == "" {
			continue
		}
		values := []string{v}
		switch {
		case s.many && s.path:
			values = filepath.SplitList(v)
		case s.many:
			values = strings.Split(v, ",")
			if !strings.HasPrefix(s.env, ours) { // it is written as other programs take it
				values = slices.DeleteFunc(values, func(v string) bool { return strings.TrimSpace(v) == "" })
			}
		}
		if err := cfg.put(s, given{values, sourceEnv, s.env}, p.env); err != nil {
			wrong = append(wrong, usagef("%s: %w", s.env, err))
		}
	}
	for _, a := range cfg.Agents {
		known[a.Model.KeyEnv] = true
	}
	for _, entry := range slices.Sorted(slices.Values(p.environ())) {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && strings.HasPrefix(name, ours) && !known[name] && !strings.HasPrefix(name, secrets.EnvPrefix) && !foreignEnv.MatchString(name) {
			wrong = append(wrong, unknownVariable(name))
		}
	}
	return wrong
}

// ours is what the names of all our variables begin with.
const ours = "HUTCH_"

// unknownVariable compares what comes after HUTCH_, which all have.
func unknownVariable(name string) error {
	var known []string
	for _, s := range settings() {
		if strings.HasPrefix(s.env, ours) {
			known = append(known, strings.TrimPrefix(s.env, ours))
		}
	}
	known = append(known, strings.TrimPrefix(envConfig, ours))
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
