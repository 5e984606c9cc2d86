package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/access"
)

// A setting is one thing that can be configured, in every way in which it can. What
// is read, what "hutch config check" shows and what help says all come from here.
type setting struct {
	// key is where it stands in the configuration file; what is behind a dot stands
	// below what is before it.
	key string
	// env and flag are its variable and its flag, empty without.
	env, flag string
	// fallback is the default. If it is derived, it says from what, for people.
	fallback string
	derived  bool
	// allowed says which values there are, example is one as it stands in the file.
	allowed, example string
	// means is what it is for.
	means string
	// many: it takes several values. path: they are files or folders, and in the
	// configuration file relative to it.
	many, path bool
	// text: it may have several lines.
	text bool
	// instead is what it cannot stand beside, or beside whose value, in the example.
	instead string
	// apart says why it may not stand in the configuration file; empty if it may.
	apart string
	// secret: its value is not shown.
	secret bool
	// set takes one value, or several if there may be. Its error says what is wrong
	// with them, and not where they stand.
	set func(cfg *Config, values []string) error
}

// Keys of settings that are not flags too.
const (
	keyJail       = "require_jail"
	keyUnattended = "allow_unattended_grants"
	keySecrets    = "secrets.file"
	keyAgeFile    = "secrets.age_file"
	keyIdentity   = "secrets.identity"
	keyPassphrase = "secrets.passphrase"
	keyLimits     = "limits."
	keyURL        = "url"
	keyHosts      = "hosts"
	keyOrigins    = "origins"
	keyCert       = "tls.cert"
	keyKey        = "tls.key"
)

// settings are all there are.
func settings() []setting {
	one := func(field func(*Config) *string) func(*Config, []string) error {
		return func(cfg *Config, values []string) error {
			*field(cfg) = values[0]
			return nil
		}
	}
	all := []setting{
		{key: flagTools, env: envTools, flag: flagTools, fallback: defaultTools, allowed: "one folder or a list of them", example: "[~/tools, /srv/tools]",
			means: "folders with modules", many: true, path: true,
			set: func(cfg *Config, values []string) error { cfg.Tools = values; return nil }},
		{key: flagState, env: envState, flag: flagState, fallback: "hutch in your state folder", derived: true, allowed: "a folder of yours alone", example: "~/.hutch",
			means: "folder for caches, kept modules and what tools keep", path: true, set: one(func(cfg *Config) *string { return &cfg.State })},
		{key: flagPolicy, env: envPolicy, flag: flagPolicy, fallback: "policy.yaml in the state folder", derived: true, allowed: "a file that nobody else can write", example: "policy.yaml",
			means: "what is granted to which module", path: true, set: one(func(cfg *Config) *string { return &cfg.Policy })},
		{key: keySecrets, env: envSecrets, fallback: "secrets in the state folder", derived: true, allowed: "a file of mode 0600", example: "secrets",
			means: "secrets as they are, one NAME=VALUE a line", path: true, set: one(func(cfg *Config) *string { return &cfg.Secrets.File })},
		{key: keyAgeFile, env: envAgeFile, fallback: "secrets.age in the state folder", derived: true, allowed: "a file of mode 0600", example: "secrets.age",
			means: "secrets encrypted with age; used with an identity or a passphrase", path: true, set: one(func(cfg *Config) *string { return &cfg.Secrets.AgeFile })},
		{key: keyIdentity, env: envIdentity, flag: flagIdentity, fallback: "none", derived: true, allowed: "a file of mode 0600", example: "~/.config/hutch/identity",
			means: "keys that open the encrypted secrets, as age-keygen writes them", path: true, set: one(func(cfg *Config) *string { return &cfg.Secrets.AgeIdentity })},
		{key: keyPassphrase, env: envPassphrase, fallback: "none", derived: true, allowed: "a text",
			means: "opens the encrypted secrets, in place of an identity", secret: true,
			apart: "it opens all secrets, and a configuration is read by many: set " + envPassphrase + ", or name an identity",
			set: func(cfg *Config, values []string) error {
				cfg.Secrets.Passphrase = secrets.Hide("passphrase", values[0])
				return nil
			}},
		{key: flagAddr, env: envAddr, flag: flagAddr, fallback: defaultAddr, allowed: "HOST:PORT; there have to be tokens for one that is not loopback", example: "127.0.0.1:9000",
			means: "where serve listens", set: one(func(cfg *Config) *string { return &cfg.Addr })},
		{key: keyURL, env: envURL, fallback: "what is asked for", derived: true, allowed: "scheme and host", example: "https://hutch.example.org",
			means: "how clients reach serve, if a proxy stands before it", set: func(cfg *Config, values []string) error {
				cfg.URL = values[0]
				return access.CheckURL(values[0])
			}},
		{key: keyHosts, env: envHosts, fallback: "none", derived: true, allowed: "names and addresses; in the variable with commas between them", example: "[hutch.example.org]",
			means: "hosts that requests may ask for besides this machine and the one of url", many: true, set: checked(access.CheckHost, func(cfg *Config) *[]string { return &cfg.Hosts })},
		{key: keyOrigins, env: envOrigins, fallback: "none", derived: true, allowed: "origins as a browser writes them; in the variable with commas between them", example: "[https://app.example.org]",
			means: "sites whose pages may call serve besides its own", many: true, set: checked(access.CheckOrigin, func(cfg *Config) *[]string { return &cfg.Origins })},
		{key: keyCert, env: envCert, fallback: "none", derived: true, allowed: "a PEM file, with tls.key", example: "cert.pem",
			means: "certificate that serve shows, with what leads to its root; read again when it changes", path: true, set: one(func(cfg *Config) *string { return &cfg.TLS.Cert })},
		{key: keyKey, env: envKey, fallback: "none", derived: true, allowed: "a PEM file that not everybody can read", example: "key.pem",
			means: "key of the certificate", path: true, set: one(func(cfg *Config) *string { return &cfg.TLS.Key })},
		{key: keyJail, env: envJail, flag: flagJail, fallback: "false", allowed: "true, false", example: "true",
			means: "run no module where the system cannot confine its process", set: truth(func(cfg *Config) *bool { return &cfg.RequireJail })},
		{key: keyUnattended, flag: flagUnattended, fallback: "false", allowed: "true, false", example: "true",
			means: "let programs decide what tools may do, with hutch tools grant --yes", set: truth(func(cfg *Config) *bool { return &cfg.AllowUnattended })},
		{key: flagLog, env: envLog, flag: flagLog, fallback: "info for serve, warn for mcp, else error", derived: true, allowed: strings.Join(logLevels(), ", "), example: "debug",
			means: "lines of this level and above go to standard error", set: setLog},
	}
	all = append(all, storeSettings()...)
	all = append(all, telemetrySettings()...)
	all = append(all, engineSettings()...)
	all = append(all, trackerSettings()...)
	for _, key := range limitKeys {
		s := setting{key: keyLimits + key.name, env: envLimit + strings.ToUpper(key.name), fallback: key.fallback, allowed: key.allowed, example: key.fallback,
			means: key.means, set: func(cfg *Config, values []string) error { return key.set(&cfg.Limits, values[0]) }}
		if key.name == flagTimeout {
			s.flag = flagTimeout
		}
		all = append(all, s)
	}
	return all
}

// checked takes values that are each checked by themselves.
func checked(check func(string) error, field func(*Config) *[]string) func(*Config, []string) error {
	return func(cfg *Config, values []string) error {
		for _, v := range values {
			if err := check(v); err != nil {
				return err
			}
		}
		*field(cfg) = values
		return nil
	}
}

func truth(field func(*Config) *bool) func(*Config, []string) error {
	return func(cfg *Config, values []string) (err error) {
		if *field(cfg), err = strconv.ParseBool(values[0]); err != nil {
			return fmt.Errorf("%s is neither true nor false", quoted(values[0]))
		}
		return nil
	}
}

func logLevels() []string { return []string{"debug", "info", "warn", "error"} }

func setLog(cfg *Config, values []string) error {
	if !slices.Contains(logLevels(), values[0]) {
		return fmt.Errorf("%s: allowed are %s", quoted(values[0]), strings.Join(logLevels(), ", "))
	}
	cfg.Log = values[0]
	return nil
}

// Sources of a value, as "hutch config check" calls them.
const (
	sourceDefault = "default"
	sourceFile    = "file"
	sourceEnv     = "environment"
	sourceFlag    = "flag"
)

// given is the value of a setting, and who gave it.
type given struct {
	values []string
	source string
	// at is the flag, the variable, or file and line; empty for a default.
	at string
}

// place is where the value of a key stands, for an error.
func (g given) place(key string) string {
	if g.source == sourceFile {
		return g.at + ": " + key
	}
	return g.at
}

// put gives a setting a value. Nothing is an error: it would mean the default to one
// person, and nothing at all to another.
func (cfg *Config) put(s setting, g given, env func(string) string) (err error) {
	cfg.given[s.key] = g // also if it is wrong, so that it can be shown
	if slices.Contains(g.values, "") {
		return errors.New("empty")
	}
	if s.path {
		g.values = slices.Clone(g.values)
		for i, path := range g.values {
			if g.values[i], err = expandHome(path, env); err != nil {
				return fmt.Errorf("%s: %w", quoted(path), err)
			}
		}
	}
	cfg.given[s.key] = g
	return s.set(cfg, g.values)
}

// settle notes what a setting has become that nobody gave a value.
func (cfg *Config) settle(key, value string) {
	if _, ok := cfg.given[key]; !ok {
		cfg.given[key] = given{[]string{value}, sourceDefault, ""}
	}
}
