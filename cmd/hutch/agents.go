package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/host/ownfile"
	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/strictyaml"
)

// agentConfig is one agent as it was configured.
type agentConfig struct {
	Name string
	// Default: it answers at /agui, and where nobody names an agent.
	Default bool
	// About says to people what it is for.
	About string
	// Prompt is told to its model before anything else; PromptFile holds it instead.
	Prompt, PromptFile string
	Model              modelConfig
	// Tools are names and patterns of those that it may call; none are all.
	Tools []string
	// StateTools may change the state that agent and client share, and PollingTools are
	// meant to be called again and again. HideState keeps the state from the model.
	StateTools, PollingTools []string
	HideState                bool
	// Repeats is how often a tool is called with the same arguments, Parallel how many
	// calls there are at the same time, and Result how much of a result is kept, in bytes.
	Repeats, Parallel, Result int
	// Rounds is how often in a run it may call tools, Wall how long a run may take, and
	// ToolTimeout how long one call. Tokens and Cost bound what a run uses; 0 is no bound.
	Rounds            int
	Wall, ToolTimeout time.Duration
	Tokens            int64
	Cost              float64
	// History says whose messages count, TrustHistory whether clients may write what
	// assistants and tools said.
	History      string
	TrustHistory bool
	// Leaving says what becomes of a run whose client leaves.
	Leaving string
	// AskFor is how long a question to a person may be answered.
	AskFor time.Duration
	// Tracker is how it takes part in a tracker.
	Tracker agentTracker
}

// Histories that an agent may go by.
const (
	historyAppend    = "append"
	historyReplace   = "replace"
	historyStateless = "stateless"
)

// What becomes of a run whose client leaves.
const (
	leavingDetach = "detach"
	leavingCancel = "cancel"
)

// keyAgents is where agents stand in a configuration, each below its name.
const keyAgents = "agents"

// onlyAgent is the name of the agent that there is where none is configured.
const onlyAgent = "default"

// agentName is what agents may be called: it stands in paths and in policies.
var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

func checkAgentName(name string) error {
	if !agentName.MatchString(name) {
		return fmt.Errorf("%s: the name of an agent has 1 to 63 small letters, digits, - and _", quoted(name))
	}
	return nil
}

// agent is the agent of that name, which is made if there is none.
func (cfg *Config) agent(name string) *agentConfig {
	for _, a := range cfg.Agents {
		if a.Name == name {
			return a
		}
	}
	a := &agentConfig{Name: name}
	cfg.Agents = append(cfg.Agents, a)
	return a
}

// putAgent makes an agent of which nothing is said but its name.
func (cfg *Config) putAgent(name string, env func(string) string) error {
	for _, s := range agentSettings(name) {
		if s.derived {
			continue
		}
		if err := cfg.put(s, given{[]string{s.fallback}, sourceDefault, ""}, env); err != nil {
			return fmt.Errorf("default of %s: %w", s.key, err)
		}
	}
	cfg.agent(name)
	return nil
}

// fromAgents takes what a configuration says below keyAgents.
func (cfg *Config) fromAgents(n *strictyaml.Node, path string, env func(string) string) error {
	var names []string
	for _, f := range n.Fields() {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return n.Errorf("names no agent: write the name of one below it, or leave it away")
	}
	cfg.agentsFrom = path
	return n.Each(names, func(i int, v *strictyaml.Node) error {
		if err := checkAgentName(names[i]); err != nil {
			return v.Errorf("%w", err)
		}
		if err := cfg.putAgent(names[i], env); err != nil {
			return v.Errorf("%w", err)
		}
		return cfg.fromMapping(agentSettings(names[i]), v, agentKey(names[i], ""), path, env)
	})
}

// agentKey is where a key of an agent stands in a configuration.
func agentKey(name, key string) string { return keyAgents + "." + name + "." + key }

// finishAgents makes the agent that there is where none is configured, and checks what
// depends on more than one value.
func (cfg *Config) finishAgents(env func(string) string) (wrong []error) {
	if len(cfg.Agents) == 0 {
		if err := cfg.putAgent(onlyAgent, env); err != nil {
			return []error{err}
		}
	}
	var defaults []string
	for _, a := range cfg.Agents {
		if a.Default {
			defaults = append(defaults, a.Name)
		}
		wrong = append(wrong, cfg.checkAgent(a)...)
	}
	switch {
	case len(defaults) > 1:
		wrong = append(wrong, usagef("%s: %s is the default agent already", cfg.given[agentKey(defaults[1], "default")].place(agentKey(defaults[1], "default")), defaults[0]))
	case len(defaults) == 1:
	case len(cfg.Agents) == 1:
		cfg.Agents[0].Default = true
	default:
		wrong = append(wrong, usagef("%s: there are %d, and none of them is the default: write default: true below one", keyAgents, len(cfg.Agents)))
	}
	for _, a := range cfg.Agents {
		cfg.settle(agentKey(a.Name, "default"), strconv.FormatBool(a.Default))
	}
	slices.SortStableFunc(cfg.Agents, func(a, b *agentConfig) int { // the default one first
		return cmp.Compare(rankOf(a.Default), rankOf(b.Default))
	})
	return wrong
}

func rankOf(first bool) int {
	if first {
		return 0
	}
	return 1
}

// checkAgent refuses keys that do not go together.
func (cfg *Config) checkAgent(a *agentConfig) (wrong []error) {
	refuse := func(key, format string, args ...any) {
		key = agentKey(a.Name, key)
		wrong = append(wrong, usagef("%s: "+format, append([]any{cfg.given[key].place(key)}, args...)...))
	}
	has := func(key string) bool {
		g := cfg.given[agentKey(a.Name, key)]
		return g.source != "" && g.source != sourceDefault
	}
	if has("prompt") && has("prompt_file") {
		refuse("prompt_file", "there is prompt too: take one away")
	}
	if has("tracker.token_env") && has("tracker.token_file") {
		refuse("tracker.token_file", "there is token_env too: take one away")
	}
	if has("model.key_env") && has("model.key_file") {
		refuse("model.key_file", "there is key_env too: take one away")
	}
	for _, s := range agentSettings(a.Name) {
		if key := strings.TrimPrefix(s.key, agentKey(a.Name, "")); has(key) && !a.Model.takes(key) {
			refuse(key, "goes with another kind of model than %s", a.Model.Kind)
		}
	}
	err := checkSlug(a.Name)
	if a.Name == access.Local {
		err = fmt.Errorf("%s: that is whoever sits at this machine", quoted(a.Name))
	}
	if err != nil && a.Tracker.listens() {
		wrong = append(wrong, hinted(cfg.inAgent(a, "tracker.tasks", err), "rename the agent, or write tracker: {tasks: none, chat: none}"))
	}
	if a.Cost > 0 && a.Model.PriceIn == 0 && a.Model.PriceCached == 0 && a.Model.PriceOut == 0 {
		refuse("limits.cost", "there is no price: write what a million tokens cost below model")
	}
	return wrong
}

// checkModels builds the model and reads the prompt of each agent, and returns what is
// wrong with them. No request is made.
func (cfg Config) checkModels(env func(string) string) (wrong []error) {
	for _, a := range cfg.Agents {
		if _, err := a.prompt(); err != nil {
			wrong = append(wrong, cfg.inAgent(a, "prompt_file", err))
		}
		if key, err := a.Model.check(env); err != nil {
			wrong = append(wrong, cfg.inAgent(a, "model."+key, err))
		}
	}
	return wrong
}

// inAgent says where in the configuration a mistake stands.
func (cfg Config) inAgent(a *agentConfig, key string, err error) error {
	key = agentKey(a.Name, key)
	return usagef("%s: %w", cmp.Or(cfg.given[key].place(key), key), err)
}

// maxPrompt is the largest file with a prompt, in bytes.
const maxPrompt = 256 << 10

// prompt is what the agent's model is told before anything else.
func (a agentConfig) prompt() (string, error) {
	if a.PromptFile == "" {
		return a.Prompt, nil
	}
	body, err := readOwn("prompt", a.PromptFile, maxPrompt, ownfile.Needs{})
	return string(body), err
}

// agentDigest tells configurations apart whose agents differ.
func (cfg Config) agentDigest() string {
	text, err := json.Marshal(cfg.Agents)
	if err != nil {
		return "" // there is nothing in them that JSON does not take
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
