package main

import (
	"strings"
	"time"
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
	// Cancel ends a run whose client leaves.
	Cancel bool
	// AskFor is how long a question to a person may be answered.
	AskFor time.Duration
}

// modelConfig is the model of an agent.
type modelConfig struct {
	Kind string
	// What follows is of openai.
	BaseURL, Name   string
	KeyEnv, KeyFile string
	Idle, Total     time.Duration
	MaxAnswer       int // tokens
	// Price is what a million tokens cost.
	PriceIn, PriceCached, PriceOut float64
	// Script is the file of script; empty is the one that comes with hutch.
	Script string
}

// String says what model it is, for people.
func (m modelConfig) String() string {
	switch {
	case m.Kind == modelOpenAI:
		return strings.Join(withoutEmpty("model", m.Name, "at", m.BaseURL), " ")
	case m.Kind == modelEcho:
		return "which repeats what it is told"
	case m.Script != "":
		return "which plays " + m.Script
	}
	return "a script that shows how tools are called"
}

// Kinds of models.
const (
	modelOpenAI = "openai"
	modelEcho   = "echo"
	modelScript = "script"
)

// Histories that an agent may go by.
const (
	historyAppend    = "append"
	historyReplace   = "replace"
	historyStateless = "stateless"
)

// onlyAgent is the name of the agent that there is where none is configured.
const onlyAgent = "default"

// defaultAgent is what an agent is of which nothing is said.
func defaultAgent(name string) agentConfig {
	return agentConfig{
		Name: name, Rounds: 16, Wall: 15 * time.Minute, ToolTimeout: 30 * time.Second, History: historyAppend, AskFor: 24 * time.Hour,
		Model: modelConfig{Kind: modelScript, Idle: time.Minute, Total: 2 * time.Minute},
	}
}

// agents are those that were configured, the default one first, or the one that there
// is where none was.
func (cfg Config) agents() (all []agentConfig) {
	only := defaultAgent(onlyAgent)
	return []agentConfig{only}
}

// prompt is what the agent's model is told before anything else.
func (a agentConfig) prompt() (string, error) {
	return a.Prompt, nil
}
