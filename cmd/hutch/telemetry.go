package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/cmd/hutch/telemetry"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
)

// telemetryConfig says where telemetry goes. Without an endpoint there is none.
type telemetryConfig struct {
	Endpoint string
	// Headers are NAME=VALUE, and may be secret.
	Headers []secrets.Value
	Service string
	// Attributes are NAME=VALUE, about this process.
	Attributes []string
	Disabled   bool
	Content    bool
	Sample     float64
	Interval   time.Duration
}

// on reports whether there is telemetry.
func (c telemetryConfig) on() bool { return c.Endpoint != "" && !c.Disabled }

// Keys of telemetry that are looked at by name.
const (
	keyEndpoint   = "telemetry.endpoint"
	keyHeaders    = "telemetry.headers"
	keyService    = "telemetry.service"
	keyAttributes = "telemetry.attributes"
)

// Variables that OpenTelemetry has for all programs. Those of them that are no setting are
// looked at where there is telemetry, and nowhere else.
const (
	envStandard   = "OTEL_"
	envEndpoint   = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envHeaders    = "OTEL_EXPORTER_OTLP_HEADERS"
	envProtocol   = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envService    = "OTEL_SERVICE_NAME"
	envAttributes = "OTEL_RESOURCE_ATTRIBUTES"
	envDisabled   = "OTEL_SDK_DISABLED"
)

// onlyProtocol is the one that is spoken, as the variable calls it.
const onlyProtocol = "http/protobuf"

// telemetrySettings are those of telemetry. What is wrong with those that have a variable
// which is not ours is found by [Config.checkTelemetry]: it is set for other programs too,
// and a command without telemetry has no use for it.
func telemetrySettings() []setting {
	return []setting{
		{key: keyEndpoint, env: envEndpoint, fallback: "none, and nothing is sent", derived: true, allowed: "scheme and host, and a path at most", example: "http://127.0.0.1:4318",
			means: "OpenTelemetry collector that traces and figures go to, over OTLP and HTTP",
			set:   func(cfg *Config, values []string) error { cfg.Telemetry.Endpoint = values[0]; return nil }},
		{key: keyHeaders, env: envHeaders, fallback: "none", derived: true, allowed: "NAME=VALUE, in which secret://NAME is a secret; in the variable with commas between them", example: "[\"Authorization=Bearer secret://otlp_token\"]",
			means: "headers that let hutch in there", many: true, secret: true, set: func(cfg *Config, values []string) error {
				cfg.Telemetry.Headers = nil
				for _, v := range values {
					cfg.Telemetry.Headers = append(cfg.Telemetry.Headers, secrets.Hide(keyHeaders, v))
				}
				return nil
			}},
		{key: keyService, env: envService, fallback: "hutch", allowed: "a name", example: "hutch",
			means: "what this hutch is called there", set: func(cfg *Config, values []string) error { cfg.Telemetry.Service = values[0]; return nil }},
		{key: keyAttributes, env: envAttributes, fallback: "none", derived: true, allowed: "NAME=VALUE; in the variable with commas between them", example: "[deployment.environment.name=test]",
			means: "what else is said about it", many: true, set: func(cfg *Config, values []string) error { cfg.Telemetry.Attributes = values; return nil }},
		{key: "telemetry.disabled", env: envDisabled, fallback: "false", allowed: "true, false", example: "false",
			means: "send nothing, whatever else is configured", set: truth(func(cfg *Config) *bool { return &cfg.Telemetry.Disabled })},
		{key: "telemetry.content", env: "HUTCH_TELEMETRY_CONTENT", fallback: "false", allowed: "true, false", example: "false",
			means: "tell what is said too: messages, arguments and results, without the values of secrets", set: truth(func(cfg *Config) *bool { return &cfg.Telemetry.Content })},
		{key: "telemetry.sample", env: "HUTCH_TELEMETRY_SAMPLE", fallback: "1", allowed: "0 to 1", example: "0.1",
			means: "share of traces that are told", set: func(cfg *Config, values []string) error { return setShare(&cfg.Telemetry.Sample, values[0]) }},
		{key: "telemetry.interval", env: "HUTCH_TELEMETRY_INTERVAL", fallback: "60s", allowed: "1s to 1h", example: "60s",
			means: "how often figures are sent", set: func(cfg *Config, values []string) error {
				if err := setDuration(&cfg.Telemetry.Interval, values[0]); err != nil {
					return err
				}
				if cfg.Telemetry.Interval < time.Second {
					return fmt.Errorf("%s: allowed are 1s to 1h", values[0])
				}
				return nil
			}},
	}
}

func setShare(field *float64, text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= 1) { // NaN is neither
		return fmt.Errorf("%s: a number from 0 to 1, such as 0.1", quoted(text))
	}
	*field = n
	return nil
}

// checkTelemetry finds what is wrong with the telemetry that there would be. It says
// nothing of the value of a header.
func (cfg Config) checkTelemetry(env func(string) string) (wrong []error) {
	c := cfg.Telemetry
	if !c.on() {
		return nil
	}
	refuse := func(key string, err error) {
		wrong = append(wrong, usagef("%s: %w", cmp.Or(cfg.given[key].place(key), key), err))
	}
	if err := telemetry.CheckEndpoint(c.Endpoint); err != nil {
		refuse(keyEndpoint, err)
	}
	for i, h := range c.Headers {
		if err := checkHeader(h.Reveal(), cfg.given[keyHeaders].source == sourceFile); err != nil {
			refuse(keyHeaders, fmt.Errorf("header %d: %w", i+1, err))
		}
	}
	for _, a := range c.Attributes {
		if _, _, err := attributeOf(a); err != nil {
			refuse(keyAttributes, fmt.Errorf("%s: %w", quoted(a), err))
		}
	}
	if p := env(envProtocol); p != "" && p != onlyProtocol {
		wrong = append(wrong, usagef("%s: %s: hutch speaks %s alone", envProtocol, quoted(p), onlyProtocol).
			withHint("name the port of the collector for HTTP, usually 4318, and unset the variable, or set %s=true", envDisabled))
	}
	return wrong
}

// headerName is what a header may be called.
var headerName = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]{1,64}$`)

// keyLike are parts of the names of headers whose values let somebody in.
var keyLike = []string{"auth", "cookie", "key", "secret", "token", "password", "credential"}

// checkHeader refuses what is no header, and in a file, which is read by many, the value of
// one that lets somebody in.
func checkHeader(text string, inFile bool) error {
	name, value, err := headerOf(text)
	if err != nil {
		return err
	}
	like := func(part string) bool { return strings.Contains(strings.ToLower(name), part) }
	if inFile && slices.ContainsFunc(keyLike, like) && len(secrets.Placeholders(value)) == 0 {
		return fmt.Errorf("%s holds a value that lets somebody in: write secret://NAME for it, and set it with \"hutch secrets set NAME\"", name)
	}
	return nil
}

// headerOf takes NAME=VALUE apart, in which % escapes are as OpenTelemetry has them.
func headerOf(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	if !ok || !headerName.MatchString(name) {
		return "", "", errors.New("NAME=VALUE is wanted, with the name of a header")
	}
	if value, err = url.PathUnescape(strings.TrimSpace(value)); err != nil {
		return "", "", errors.New("the value has a % that escapes nothing: write %25")
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", "", errors.New("the value has a character that no header has")
	}
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Trailer", "Upgrade":
		return "", "", fmt.Errorf("%s is set by hutch: leave it out", name)
	}
	return name, value, nil
}

// attributeOf takes NAME=VALUE apart.
func attributeOf(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return "", "", errors.New("NAME=VALUE is wanted")
	}
	if value, err = url.PathUnescape(strings.TrimSpace(value)); err != nil {
		return "", "", errors.New("the value has a % that escapes nothing: write %25")
	}
	return name, value, nil
}

// open begins telemetry, nil if there is none.
func (c telemetryConfig) open(p program, vault *secrets.Vault, log *slog.Logger) (*telemetry.T, error) {
	if !c.on() {
		return nil, nil
	}
	if other := otherStandard(p); len(other) > 0 {
		log.Warn("variables of OpenTelemetry have no effect on hutch", "variables", abi.OneLine(strings.Join(other, ", "), 400))
	}
	about := map[string]string{}
	for _, a := range c.Attributes {
		name, value, err := attributeOf(a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", keyAttributes, err)
		}
		about[name] = value
	}
	return telemetry.Open(telemetry.Options{
		Endpoint: c.Endpoint, Headers: func() (http.Header, error) { return c.header(vault) },
		Service: c.Service, Version: readBuildInfo().Version, Attributes: about,
		Sample: c.Sample, Content: c.Content, Every: c.Interval,
		Redact:    func(text string) string { text, _ = vault.Redactor().Text(text); return text },
		RequestID: requestID, Status: callStatus, Logger: log,
	})
}

// header is what is sent with everything, with secrets as they are now.
func (c telemetryConfig) header(vault *secrets.Vault) (http.Header, error) {
	all := http.Header{}
	for _, h := range c.Headers {
		name, value, err := headerOf(h.Reveal())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", keyHeaders, err)
		}
		names := secrets.Placeholders(value)
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // one may begin another
		for _, secret := range names {
			v, ok := vault.Get(secret)
			if !ok {
				return nil, fmt.Errorf("%s: the secret %s is not set: set it with \"hutch secrets set %s\"", keyHeaders, secret, secret)
			}
			value = strings.ReplaceAll(value, secrets.Placeholder(secret), v.Reveal())
		}
		all.Add(name, value)
	}
	return all, nil
}

// otherStandard are variables of OpenTelemetry that are set and mean nothing here.
func otherStandard(p program) (names []string) {
	known := []string{envProtocol}
	for _, s := range telemetrySettings() {
		known = append(known, s.env)
	}
	for _, entry := range p.secretEnviron() {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && strings.HasPrefix(name, envStandard) && !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// told is the model as telemetry tells of it.
func (m modelConfig) told() telemetry.Model {
	if m.Kind != modelOpenAI {
		return telemetry.Model{Name: m.Kind}
	}
	return telemetry.Model{Provider: "openai", Name: m.Name, URL: m.BaseURL}
}
