package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/secrets"
	"github.com/urfave/cli/v2"
)

// Whatever can be configured has a setting: with every example given, nothing of a
// Config is left as it was.
func TestEverythingHasASetting(t *testing.T) {
	cfg := Config{given: map[string]given{}}
	for _, s := range settings() {
		value := strings.Trim(strings.Split(s.example, ",")[0], "[]")
		if s.example == "" {
			value = "a text"
		}
		switch { // which is zero
		case strings.HasSuffix(s.fallback, "auto"):
			value = "7"
		case value == "false":
			value = "true"
		}
		if err := cfg.put(s, given{[]string{value}, sourceFile, "x"}, func(string) string { return "/home/ann" }); err != nil {
			t.Errorf("the example of %s: %v", s.key, err)
		}
	}
	for _, name := range unset(reflect.ValueOf(cfg), "") {
		// An author's, by its flag alone; a module's, in its policy; agents, which have
		// names and many keys each; a token that was read already.
		if !slices.Contains([]string{".Dev", ".Limits.Call.Fresh", ".Agents", ".Tracker.Token"}, name) && !slices.Contains(engineOwn, name) {
			t.Errorf("Config%s has no setting", name)
		}
	}
}

// engineOwn is what the engine decides itself, or the program for it: bounds that keep it
// from harm, and its surroundings. RunTime follows from the agents.
var engineOwn = []string{
	".Engine.RunTime", ".Engine.MessageBytes", ".Engine.StateBytes", ".Engine.TailBytes", ".Engine.SweepEvery",
	".Engine.Buffer", ".Engine.BufferBytes", ".Engine.LagBytes", ".Engine.Cache.Messages", ".Engine.Cache.Bytes",
	".Engine.Jobs", ".Engine.Now", ".Engine.Logger",
}

// unset names the exported fields in v that are zero.
func unset(v reflect.Value, path string) (names []string) {
	if v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[secrets.Value]() {
		if v.IsZero() {
			names = append(names, path)
		}
		return names
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			names = append(names, unset(v.Field(i), path+"."+f.Name)...)
		}
	}
	return names
}

// Each setting is one thing, wherever it is given: the file, the variable and the
// flag are read, and the last wins.
func TestSettingsAreReadFromEverySource(t *testing.T) {
	for _, s := range settings() {
		value := s.example
		body := s.key + ": " + value + "\n"
		if top, below, ok := strings.Cut(s.key, "."); ok {
			body = top + ": {" + below + ": " + value + "}\n"
		}
		env, args := map[string]string{}, []string(nil)
		switch s.key { // one goes with the other
		case keyCert:
			env[envKey] = "key.pem"
		case keyKey:
			env[envCert] = "cert.pem"
		case keyStorePassword:
			env[envStoreURL] = "postgres://hutch@db.example.org/hutch"
		}
		if s.key == keyAgeFile || s.apart != "" { // which need something beside them
			continue
		}
		first := strings.Trim(strings.Split(value, ",")[0], "[]")
		for _, source := range []string{sourceFile, sourceEnv, sourceFlag} {
			if source == sourceEnv && s.env == "" || source == sourceFlag && (s.flag == "" || s.flag == flagTimeout) {
				continue
			}
			switch source {
			case sourceEnv:
				env[s.env] = first
			case sourceFlag:
				args = []string{"--" + s.flag + "=" + first}
			}
			cfg, err := readConfig(t, body, env, args...)
			if g := cfg.given[s.key]; err != nil || g.source != source || len(g.values) == 0 {
				t.Errorf("%s: %v, %+v, want it from the %s", s.key, err, g, source)
			}
		}
	}
	_, err := readConfig(t, "secrets: {passphrase: hunter2hunter2}\n", nil)
	if err == nil || !strings.HasPrefix(err.Error(), "hutch.yaml:1: secrets.passphrase: it opens all secrets, ") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a passphrase in the file: %v", err)
	}
}

// What flags say about variables and defaults is what the settings are.
func TestFlagsAndSettingsAgree(t *testing.T) {
	known := settings()
	variable := regexp.MustCompile(`env (HUTCH_\w+)`)
	var walk func(commands []*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, cmd := range commands {
			walk(cmd.Subcommands)
			for _, f := range cmd.Flags {
				doc, ok := f.(cli.DocGenerationFlag)
				if !ok {
					continue
				}
				at := slices.IndexFunc(known, func(s setting) bool { return s.flag == f.Names()[0] })
				m := variable.FindStringSubmatch(doc.GetUsage())
				says, want := "", ""
				if m != nil && m[1] != envConfig {
					says = m[1]
				}
				if at >= 0 {
					want = known[at].env
				}
				if says != want {
					t.Errorf("%s --%s: %s", cmd.FullName(), f.Names()[0], doc.GetUsage())
				}
			}
		}
	}
	walk(newCLI(scriptProgram()).Commands)
}

func TestSecretPlaces(t *testing.T) {
	tools := t.TempDir()
	for _, key := range []string{"file", "age_file", "identity"} {
		body := fmt.Sprintf("tools: %s\nsecrets: {identity: /none, %s: %s}\n", tools, key, filepath.Join(tools, "x"))
		if key == "identity" {
			body = strings.Replace(body, "identity: /none, ", "", 1)
		}
		_, err := readConfig(t, body, nil)
		wantUsage(t, err, fmt.Sprintf("secrets.%s %s: lies in the tool folder %s, where others put files", key, quoted(filepath.Join(tools, "x")), quoted(tools)))
	}
	_, err := readConfig(t, "secrets: {identity: a}\n", map[string]string{"HUTCH_SECRETS_PASSPHRASE": "x y z"})
	wantUsage(t, err, "hutch.yaml:1: there is HUTCH_SECRETS_PASSPHRASE too, and one of them opens the encrypted secrets: take one away")
	_, err = readConfig(t, "secrets: {age_file: a}\n", nil)
	wantUsage(t, err, "hutch.yaml:1: nothing opens the encrypted secrets: name an identity as secrets.identity, or set HUTCH_SECRETS_PASSPHRASE")
	cfg, err := readConfig(t, "secrets: {identity: id}\n", nil)
	at, _ := os.Getwd()
	if err != nil || cfg.Secrets.AgeIdentity != filepath.Join(at, "id") || cfg.Secrets.AgeFile != filepath.Join(cfg.State, "secrets.age") || !cfg.Secrets.opened() {
		t.Errorf("%+v, %v", cfg.Secrets, err)
	}
}

// The first mistake is told, and how to see the others.
func TestSeveralMistakes(t *testing.T) {
	_, err := readConfig(t, "tolls: a\nlimits: {memory: 1, queue: 0}\n", map[string]string{"HUTCH_TOLLS": "x"})
	if err == nil || !strings.HasPrefix(err.Error(), "hutch.yaml:1: tolls: no such key") || !strings.HasSuffix(err.Error(), " (and 3 more)") || hintOf(err) != `see all of them with "hutch config check hutch.yaml"` {
		t.Errorf("%v; %s", err, hintOf(err))
	}
}
