package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/strictyaml"
	"github.com/urfave/cli/v2"
)

// readConfig runs loadConfig as a command would, in a folder of its own with
// body as hutch.yaml, unless body is empty.
func readConfig(t testing.TB, body string, env map[string]string, args ...string) (Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if body != "" {
		if err := os.WriteFile("hutch.yaml", []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"--config", "hutch.yaml"}, args...)
	}
	return configOf(t, env, args...)
}

// configOf is the configuration of these arguments, in the current folder.
func configOf(t testing.TB, env map[string]string, args ...string) (Config, error) {
	t.Helper()
	p := program{env: func(name string) string {
		if v, ok := env[name]; ok || name != "HOME" {
			return v
		}
		return "/home/ann"
	}, environ: func() (all []string) {
		for name, v := range env {
			all = append(all, name+"="+v)
		}
		return all
	}}
	var cfg Config
	var got error
	app := &cli.App{Name: "hutch", Flags: append(append(folderFlags(), elsewhereFlags()...), addrFlag(), identityFlag(), unattendedFlag(), logFlag("error")), DisableSliceFlagSeparator: true,
		Action: func(c *cli.Context) error {
			cfg, got = loadConfig(c, p)
			return nil
		}}
	if err := app.RunContext(context.Background(), append([]string{"hutch"}, args...)); err != nil {
		t.Fatal(err)
	}
	return cfg, got
}

func TestConfigPrecedence(t *testing.T) {
	const file = "tools: [a, /b]\nstate: s\naddr: localhost:1\nlimits: {timeout: 1s, memory: 1MiB}\n"
	env := map[string]string{
		"HUTCH_TOOLS": "c" + string(os.PathListSeparator) + "d", "HUTCH_STATE": "/e", "HUTCH_ADDR": "127.0.0.1:2",
		"HUTCH_LIMIT_TIMEOUT": "2s",
	}
	for _, c := range []struct {
		name string
		body string
		env  map[string]string
		args []string
		want Config
		wall time.Duration
	}{
		{"default", "", nil, nil,
			Config{Tools: []string{"tools"}, State: "/home/ann/.local/state/hutch", Addr: defaultAddr}, 30 * time.Second},
		{"file", file, nil, nil,
			Config{Tools: []string{"a", "/b"}, State: "./s", Addr: "localhost:1"}, time.Second},
		{"env over file", file, env, nil,
			Config{Tools: []string{"c", "d"}, State: "/e", Addr: "127.0.0.1:2"}, 2 * time.Second},
		{"flags over env", file, env, []string{"--tools", "f,g", "--tools", "h", "--state", "/i", "--addr", "[::1]:3"},
			Config{Tools: []string{"f,g", "h"}, State: "/i", Addr: "[::1]:3"}, 2 * time.Second},
		{"empty file", "# nothing\n", nil, nil,
			Config{Tools: []string{"tools"}, State: "/home/ann/.local/state/hutch", Addr: defaultAddr}, 30 * time.Second},
		{"json", `{"tools": "x", "limits": {"timeout": "90s"}}`, nil, nil,
			Config{Tools: []string{"x"}, State: "/home/ann/.local/state/hutch", Addr: defaultAddr}, 90 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readConfig(t, c.body, c.env, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if state, err := filepath.Abs(c.want.State); err != nil || got.State != state {
				t.Errorf("state %q, want %q (%v)", got.State, state, err)
			}
			if strings.Join(got.Tools, " ") != strings.Join(c.want.Tools, " ") || got.Addr != c.want.Addr {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got.Limits.Call.Wall != c.wall {
				t.Errorf("timeout %v, want %v", got.Limits.Call.Wall, c.wall)
			}
		})
	}
}

// No shell replaces a ~ in a file, in a variable, or behind a "=".
func TestConfigOfTheHomeFolder(t *testing.T) {
	cfg, err := readConfig(t, "tools: [~/a, ~b, ./~/c]\nstate: ~/s\n", nil)
	if err != nil || !slices.Equal(cfg.Tools, []string{"/home/ann/a", "~b", "./~/c"}) || cfg.State != "/home/ann/s" {
		t.Errorf("file: %q, %q, %v", cfg.Tools, cfg.State, err)
	}
	cfg, err = readConfig(t, "", map[string]string{"HUTCH_STATE": "~"}, "--tools=~/a")
	if err != nil || !slices.Equal(cfg.Tools, []string{"/home/ann/a"}) || cfg.State != "/home/ann" {
		t.Errorf("elsewhere: %q, %q, %v", cfg.Tools, cfg.State, err)
	}
	_, err = readConfig(t, "", map[string]string{"HOME": "", "HUTCH_STATE": "/s"}, "--tools=~/a")
	if err == nil || err.Error() != `--tools: "~/a": no home folder is known: write the whole path` {
		t.Errorf("homeless: %v", err)
	}
}

func TestConfigIndentedWithTabs(t *testing.T) {
	_, err := readConfig(t, "tools: a\nlimits:\n\ttimeout: 3s\n", nil)
	if err == nil || err.Error() != "hutch.yaml:3: tabs cannot indent in YAML: use spaces" {
		t.Error(err)
	}
	_, err = readConfig(t, "tools: [a\nlimits: {timeout: 3s}\t# no tab before it\n", nil)
	if err == nil || strings.Contains(err.Error(), "tabs") {
		t.Errorf("another mistake: %v", err)
	}
	_, err = readConfig(t, "limits: {calls_at_once: 0}\n", nil)
	if err == nil || !strings.HasSuffix(err.Error(), "limits.calls_at_once: 0: allowed are auto, 1 to 1000") {
		t.Error(err)
	}
}

func TestRequireJail(t *testing.T) {
	const file = "require_jail: true\n"
	for _, c := range []struct {
		body, env string
		args      []string
		want      bool
	}{
		{"", "", nil, false},
		{file, "", nil, true},
		{file, "false", nil, false},
		{"", "1", nil, true},
		{"", "", []string{"--require-jail"}, true},
		{file, "1", []string{"--require-jail=false"}, false},
	} {
		cfg, err := readConfig(t, c.body, map[string]string{"HUTCH_REQUIRE_JAIL": c.env}, c.args...)
		if err != nil || cfg.RequireJail != c.want {
			t.Errorf("%+v: %v, %v", c, cfg.RequireJail, err)
		}
	}
	if _, err := readConfig(t, "", map[string]string{"HUTCH_REQUIRE_JAIL": "maybe"}); err == nil {
		t.Error("HUTCH_REQUIRE_JAIL=maybe is accepted")
	}
}

func TestAllowUnattendedGrants(t *testing.T) {
	const file = "allow_unattended_grants: true\n"
	for _, c := range []struct {
		body string
		args []string
		want bool
	}{
		{"", nil, false},
		{file, nil, true},
		{"", []string{"--allow-unattended-grants"}, true},
		{file, []string{"--allow-unattended-grants=false"}, false},
	} {
		if cfg, err := readConfig(t, c.body, nil, c.args...); err != nil || cfg.AllowUnattended != c.want {
			t.Errorf("%+v: %v, %v", c, cfg.AllowUnattended, err)
		}
	}
	if _, err := readConfig(t, "allow_unattended_grants: maybe\n", nil); err == nil {
		t.Error("maybe is accepted")
	}
}

func TestConfigFileIsReadOnlyIfNamed(t *testing.T) {
	cfg, err := readConfig(t, "addr: 127.0.0.1:1\n", map[string]string{}, "--config", "")
	if err != nil || cfg.Addr != defaultAddr {
		t.Errorf("addr %q, %v", cfg.Addr, err)
	}
}

func TestConfigOfModules(t *testing.T) {
	cfg, err := readConfig(t, "limits: {calls_at_once: 1000, queue: 1, calls_per_second: 7, heartbeat: 1s, deaths: 1, deaths_within: 1m}\n", nil)
	l := cfg.Limits
	if err != nil || l.AtOnce != 1000 || l.Queue != 1 || l.PerSecond != 7 || l.Heartbeat != time.Second || l.Deaths != 1 || l.DeathWindow != time.Minute {
		t.Errorf("%+v, %v", l, err)
	}
	if cfg, err = readConfig(t, "limits: {calls_at_once: auto}\n", nil); err != nil || cfg.Limits.AtOnce != 0 {
		t.Errorf("%+v, %v", cfg.Limits, err)
	}
}

func TestConfigErrors(t *testing.T) {
	const sizes = "a size is a whole number and B, KiB, MiB or GiB, such as 64MiB"
	for _, c := range []struct {
		name, body, want string
	}{
		{"unknown key", "tools: a\ntolls: b\n", "hutch.yaml:2: tolls: no such key; there are tools, state, policy, secrets, addr, url, hosts, origins, tls, require_jail, allow_unattended_grants, log, store, telemetry, runs, threads, tracker, limits, agents"},
		{"unknown limit", "limits:\n  timeout: 1s\n  memroy: 1MiB\n",
			"hutch.yaml:3: limits.memroy: no such key; there are memory, timeout, compile, input, output, log_lines, log_line, host_calls, fuel, calls_at_once, queue, calls_per_second, heartbeat, deaths, deaths_within, body, connections, workers"},
		{"key twice", "addr: localhost:1\naddr: localhost:2\n", "hutch.yaml:2: addr: stands there twice, first in line 1"},
		{"no truth", "require_jail: maybe\n", `hutch.yaml:1: require_jail: "maybe" is neither true nor false`},
		{"no unit", "limits:\n  memory: 64\n", `hutch.yaml:2: limits.memory: "64": ` + sizes},
		{"decimal unit", "limits: {memory: 64MB}\n", `hutch.yaml:1: limits.memory: "64MB": ` + sizes},
		{"negative size", "limits: {memory: -1MiB}\n", `hutch.yaml:1: limits.memory: "-1MiB": ` + sizes},
		{"size that overflows", "limits: {memory: 99999999999GiB}\n", `hutch.yaml:1: limits.memory: "99999999999GiB": ` + sizes},
		{"size too small", "limits: {memory: 1KiB}\n", "hutch.yaml:1: limits.memory: 1KiB: allowed are 64KiB to 4GiB"},
		{"no time unit", "limits: {timeout: 30}\n", `hutch.yaml:1: limits.timeout: "30": a duration is a number and ms, s, m or h, such as 30s`},
		{"zero time", "limits: {timeout: 0}\n", `hutch.yaml:1: limits.timeout: "0": a duration is a number and ms, s, m or h, such as 30s`},
		{"negative time", "limits: {timeout: -1s}\n", "hutch.yaml:1: limits.timeout: -1s: allowed are 1ms to 1h"},
		{"long time", "limits: {timeout: 2h}\n", "hutch.yaml:1: limits.timeout: 2h: allowed are 1ms to 1h"},
		{"calls at once", "limits: {calls_at_once: 1001}\n", "hutch.yaml:1: limits.calls_at_once: 1001: allowed are auto, 1 to 1000"},
		{"no queue", "limits: {queue: 0}\n", "hutch.yaml:1: limits.queue: 0: allowed are 1 to 1000000"},
		{"part of a second", "limits: {heartbeat: 1500ms}\n", "hutch.yaml:1: limits.heartbeat: 1500ms: allowed are 1s to 1h, whole seconds"},
		{"slow heart", "limits: {heartbeat: 3601s}\n", "hutch.yaml:1: limits.heartbeat: 3601s: allowed are 1ms to 1h"},
		{"long memory", "limits: {deaths_within: 61m}\n", "hutch.yaml:1: limits.deaths_within: 61m: allowed are 1ms to 1h"},
		{"count with a unit", "limits: {connections: 5x}\n", `hutch.yaml:1: limits.connections: "5x": a whole number without a unit, such as 100 or 5e9`},
		{"count with a fraction", "limits: {fuel: 1.5e6}\n", `hutch.yaml:1: limits.fuel: "1.5e6": a whole number without a unit, such as 100 or 5e9`},
		{"count of zeros alone", "limits: {fuel: e9}\n", `hutch.yaml:1: limits.fuel: "e9": a whole number without a unit, such as 100 or 5e9`},
		{"count with too many zeros", "limits: {fuel: 1e19}\n", `hutch.yaml:1: limits.fuel: "1e19": a whole number without a unit, such as 100 or 5e9`},
		{"count above what is allowed", "limits: {fuel: 1e16}\n", `hutch.yaml:1: limits.fuel: 1e16: allowed are 1 to 1000000000000000`},
		{"no count", "limits: {connections: 0}\n", "hutch.yaml:1: limits.connections: 0: allowed are 1 to 100000"},
		{"list for a value", "limits: {timeout: [1s]}\n", "hutch.yaml:1: limits.timeout: one plain value is wanted here"},
		{"value for a mapping", "limits: 30s\n", "hutch.yaml:1: limits: keys and values are wanted here"},
		{"no folder", "tools: []\n", "hutch.yaml:1: tools: empty: name at least one"},
		{"empty folder", "tools: [a, '']\n", "hutch.yaml:1: tools[1]: empty"},
		{"nothing", "state:\n", "hutch.yaml:1: state: empty"},
		{"alias", "state: &s x\ntools: *s\n", "hutch.yaml:1: anchors (&) are not read: write the value where it belongs, or put it in quotes"},
		{"list at the top", "- tools\n", "hutch.yaml:1: keys and values are wanted here"},
		{"two documents", "state: a\n---\nstate: b\n", "hutch.yaml:3: a second document: one is read"},
		{"url", "url: https://hutch.example.org/mcp\n", `hutch.yaml:1: url: "https://hutch.example.org/mcp": write scheme and host alone, such as https://hutch.example.org`},
		{"host", "hosts: [hutch:8420]\n", `hutch.yaml:1: hosts: "hutch:8420": write the name of a host, without a scheme and a port, such as hutch.example.org`},
		{"origin", "origins: ['https://a.example', '*']\n", `hutch.yaml:1: origins: "*": write an origin as a browser does, such as https://app.example.org`},
		{"certificate", "tls:\n  cert: cert.pem\n", "hutch.yaml:2: tls.cert: there is no tls.key: a certificate goes with its key"},
		{"key", "tls: {key: key.pem}\n", "hutch.yaml:1: tls.key: there is no tls.cert: a certificate goes with its key"},
		{"no yaml", "tools: [a\n", "hutch.yaml:1: sequence end token ']' not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readConfig(t, c.body, nil)
			wantUsage(t, err, c.want)
		})
	}
}

func wantUsage(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if !errors.Is(err, errUsage) || exitCode(err) != exitUsage {
		t.Errorf("exit code %d, want %d", exitCode(err), exitUsage)
	}
}

func TestConfigOfFlagsAndEnvironment(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		want string
	}{
		{"env limit", map[string]string{"HUTCH_LIMIT_MEMORY": "1 MiB"}, nil,
			`HUTCH_LIMIT_MEMORY: "1 MiB": a size is a whole number and B, KiB, MiB or GiB, such as 64MiB`},
		{"port of the environment", map[string]string{"HUTCH_ADDR": ":x"}, nil, `HUTCH_ADDR: ":x": port "x": allowed are 0 to 65535`},
		{"origins of the environment", map[string]string{"HUTCH_ORIGINS": "https://a.example,null"}, nil,
			`HUTCH_ORIGINS: "null": write an origin as a browser does, such as https://app.example.org`},
		{"no such limit", map[string]string{"HUTCH_LIMIT_MEMROY": "1MiB"}, nil, "HUTCH_LIMIT_MEMROY: no such variable"},
		{"no such variable", map[string]string{"HUTCH_TOOL": "x"}, nil, "HUTCH_TOOL: no such variable"},
		{"no state folder", map[string]string{"HOME": ""}, nil, "no state folder: HOME is not set"},
		{"empty state", nil, []string{"--state", ""}, "--state: empty"},
		{"empty folder", nil, []string{"--tools", ""}, "--tools: empty"},
		{"no such file", nil, []string{"--config", "none.yaml"}, `config "none.yaml": no such file or directory`},
		{"folder as file", nil, []string{"--config", "."}, `config ".": it is a directory, not a regular file`},
		{"no port", nil, []string{"--addr", "127.0.0.1"}, `--addr: "127.0.0.1": missing port in address`},
		{"named port", nil, []string{"--addr", "127.0.0.1:http"}, `--addr: "127.0.0.1:http": port "http": allowed are 0 to 65535`},
		{"large port", nil, []string{"--addr", "127.0.0.1:65536"}, `--addr: "127.0.0.1:65536": port "65536": allowed are 0 to 65535`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readConfig(t, "", c.env, c.args...)
			wantUsage(t, err, c.want)
		})
	}
}

func TestConfigOfTheListener(t *testing.T) {
	cfg, err := readConfig(t, "url: https://h.example\norigins: [https://a.example]\ntls: {cert: c.pem, key: ../k.pem}\n",
		map[string]string{"HUTCH_HOSTS": "one.example,two.example", "HUTCH_ADDR": "0.0.0.0:1"})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.URL != "https://h.example" || strings.Join(cfg.Hosts, " ") != "one.example two.example" || strings.Join(cfg.Origins, " ") != "https://a.example" {
		t.Errorf("%+v", cfg)
	}
	if !filepath.IsAbs(cfg.TLS.Cert) || filepath.Base(cfg.TLS.Cert) != "c.pem" || !filepath.IsAbs(cfg.TLS.Key) || cfg.Addr != "0.0.0.0:1" {
		t.Errorf("%+v", cfg)
	}
}

func TestUnknownVariableHints(t *testing.T) {
	for name, want := range map[string]string{
		"HUTCH_TOOL":         "did you mean HUTCH_TOOLS?",
		"HUTCH_LIMIT_MEMROY": "did you mean HUTCH_LIMIT_MEMORY?",
		"HUTCH_TIMEOUT":      "did you mean HUTCH_LIMIT_TIMEOUT?",
		"HUTCH_Z":            "there are, after HUTCH_, TOOLS, STATE, ",
	} {
		if got := hintOf(unknownVariable(name)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Kubernetes sets these for a service called hutch, and other programs may look
// for an empty one.
func TestForeignVariables(t *testing.T) {
	env := map[string]string{"HUTCH_TOLS": ""}
	for _, name := range []string{
		"HUTCH_REQUIRE", "HUTCH_SERVICE_HOST", "HUTCH_SERVICE_PORT_HTTP", "HUTCH_PORT", "HUTCH_PORT_8420_TCP_ADDR", "HUTCH_MCP_SERVICE_PORT", "HUTCH_MCP_PORT",
	} {
		env[name] = "x"
	}
	if _, err := readConfig(t, "", env); err != nil {
		t.Error(err)
	}
}

func TestConfigFileTooLarge(t *testing.T) {
	_, err := readConfig(t, strings.Repeat("#", strictyaml.MaxBytes), nil)
	if err != nil {
		t.Errorf("%d bytes: %v", strictyaml.MaxBytes, err)
	}
	_, err = readConfig(t, strings.Repeat("#", strictyaml.MaxBytes+1), nil)
	wantUsage(t, err, `config "hutch.yaml": it has more than 65536 bytes`)
}

func TestLimitKeysHaveDefaults(t *testing.T) {
	l, err := defaultLimits()
	if err != nil {
		t.Fatal(err)
	}
	if l.Call != l.Call.WithDefaults() {
		t.Errorf("defaults here and in abi differ: %+v, %+v", l.Call, l.Call.WithDefaults())
	}
}

func TestStateFolder(t *testing.T) {
	for _, c := range []struct {
		goos string
		env  map[string]string
		want string
	}{
		{"linux", map[string]string{"HOME": "/h"}, "/h/.local/state/hutch"},
		{"linux", map[string]string{"HOME": "/h", "XDG_STATE_HOME": "/x"}, "/x/hutch"},
		{"linux", map[string]string{"HOME": "/h", "XDG_STATE_HOME": "x"}, "/h/.local/state/hutch"},
		{"darwin", map[string]string{"HOME": "/h"}, "/h/Library/Application Support/hutch"},
		{"windows", map[string]string{"LocalAppData": "/l"}, "/l/hutch"},
	} {
		got, err := stateFolder(c.goos, func(name string) string { return c.env[name] })
		if err != nil || filepath.ToSlash(got) != c.want {
			t.Errorf("%s %v: %q, %v", c.goos, c.env, got, err)
		}
	}
}

func FuzzConfigFile(f *testing.F) {
	f.Add([]byte("tools: [a, b]\nlimits: {timeout: 1s}\n"))
	f.Add([]byte("a: &a [*a]\n? {}: 1\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		path := filepath.Join(t.TempDir(), "hutch.yaml")
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := Config{given: map[string]given{}}
		for _, err := range cfg.fromFile(settings(), path, os.Getenv) {
			if !errors.Is(err, errUsage) || strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q", err)
			}
		}
	})
}
