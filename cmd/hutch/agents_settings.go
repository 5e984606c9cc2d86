package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/runtime/agent"
)

// agentSettings are those of one agent. What is read, what "hutch config check" shows
// and what help says come from here.
func agentSettings(name string) []setting {
	f := agentField(name)
	all := slices.Concat(f.words(), f.model(), f.limits(), f.threads(), f.tracker())
	for i := range all {
		all[i].key = agentKey(name, all[i].key)
	}
	return all
}

// agentField makes settings of the agent of that name.
type agentField string

// words are who it is, and what it may call.
func (f agentField) words() []setting {
	return []setting{
		{key: "default", fallback: "true for the only one", derived: true, allowed: "true, false", example: "true",
			means: "it answers at /agui, and where nobody names an agent", set: f.truth(func(a *agentConfig) *bool { return &a.Default })},
		{key: "about", fallback: "nothing", derived: true, allowed: "a text", example: "\"Answers questions about notes.\"",
			means: "what people read about it", set: f.word(func(a *agentConfig) *string { return &a.About })},
		{key: "prompt", fallback: "nothing", derived: true, allowed: "a text, also of several lines behind |", example: "\"You help with notes. Answer in one sentence.\"",
			means: "what its model is told before anything else", text: true, set: f.word(func(a *agentConfig) *string { return &a.Prompt })},
		{key: "prompt_file", fallback: "none", derived: true, allowed: "a text file", instead: "prompt", example: "prompt.md",
			means: "the same from a file", path: true, set: f.word(func(a *agentConfig) *string { return &a.PromptFile })},
		{key: "tools", fallback: "all that are ready", derived: true, allowed: "names, in which * stands for any part", example: "[\"note_*\", text_stats]",
			means: "tools that it may call", many: true, set: func(cfg *Config, values []string) error {
				cfg.agent(string(f)).Tools = values
				return checkPatterns(values)
			}},
		{key: "polling_tools", fallback: "none", derived: true, allowed: "names", example: "[text_stats]",
			means: "tools that are meant to be called again and again", many: true, set: f.tools(func(a *agentConfig) *[]string { return &a.PollingTools })},
		{key: "state_tools", fallback: "none", derived: true, allowed: "names", example: "[text_stats]",
			means: "tools that may change the state that agent and client share", many: true, set: f.tools(func(a *agentConfig) *[]string { return &a.StateTools })},
		{key: "hide_state", fallback: "false", allowed: "true, false", example: "false",
			means: "keep that state from the model", set: f.truth(func(a *agentConfig) *bool { return &a.HideState })},
	}
}

// model is what answers.
func (f agentField) model() []setting {
	return []setting{
		{key: "model.kind", fallback: modelScript, allowed: strings.Join(modelKinds(), ", "), example: modelOpenAI,
			means: "openai asks a server that speaks the chat completions API, script plays a file, echo repeats", set: f.word(func(a *agentConfig) *string { return &a.Model.Kind }, modelKinds()...)},
		{key: "model.base_url", fallback: defaultBaseURL, allowed: "what the paths of the API stand below", example: "http://127.0.0.1:11434/v1",
			means: "where the model is", set: f.checked(func(a *agentConfig) *string { return &a.Model.BaseURL }, checkBaseURL)},
		{key: "model.name", fallback: "the server's choice", derived: true, allowed: "as the server calls it", example: "\"qwen3:8b\"",
			means: "which model", set: f.word(func(a *agentConfig) *string { return &a.Model.Name })},
		{key: "model.key_env", fallback: "none", derived: true, allowed: "the name of a variable", instead: "key_file", example: "OPENAI_API_KEY",
			means: "variable that holds the key", set: f.checked(func(a *agentConfig) *string { return &a.Model.KeyEnv }, checkVariable)},
		{key: "model.key_file", fallback: "none", derived: true, allowed: "a file of mode 0600", example: "model-key",
			means: "file that holds the key; read again for each request", path: true, set: f.word(func(a *agentConfig) *string { return &a.Model.KeyFile })},
		{key: "model.script", fallback: "the one that comes with hutch", derived: true, allowed: "a file of steps", instead: "kind: openai", example: "script.yaml",
			means: "what the kind script plays", path: true, set: f.word(func(a *agentConfig) *string { return &a.Model.Script })},
		{key: "model.idle", fallback: "60s", allowed: "1ms to 1h", example: "60s",
			means: "longest silence of the model", set: f.span(func(a *agentConfig) *time.Duration { return &a.Model.Idle }, maxDuration)},
		{key: "model.total", fallback: "120s", allowed: "1ms to 1h", example: "120s",
			means: "longest answer of the model, with all attempts", set: f.span(func(a *agentConfig) *time.Duration { return &a.Model.Total }, maxDuration)},
		{key: "model.max_answer", fallback: "the server's bound", derived: true, allowed: "1 to 10000000", example: "4096",
			means: "most tokens of one answer", set: f.take(func(a *agentConfig, text string) error { return setCount(&a.Model.MaxAnswer, text, 10_000_000) })},
		{key: "model.parts", fallback: "image", allowed: strings.Join(modelParts(), ", ") + ", or none", example: "[image]",
			means: "what of messages the model takes besides text; the rest is a note", many: true, set: func(cfg *Config, values []string) error {
				return cfg.agent(string(f)).Model.setParts(values)
			}},
		{key: "model.usage", fallback: "true", allowed: "true, false", example: "true",
			means: "ask for what was used, which few servers refuse", set: f.truth(func(a *agentConfig) *bool { return &a.Model.Usage })},
		{key: "model.extra", fallback: "none", derived: true, allowed: "NAME=JSON", example: "[temperature=0.2]",
			means: "further members of each request", many: true, set: func(cfg *Config, values []string) error {
				return cfg.agent(string(f)).Model.setExtra(values)
			}},
		{key: "model.price_input", fallback: "0", allowed: "0 to 1000000", example: "0.25",
			means: "what a million tokens cost that it reads", set: f.money(func(a *agentConfig) *float64 { return &a.Model.PriceIn })},
		{key: "model.price_cached", fallback: "0", allowed: "0 to 1000000", example: "0.025",
			means: "what a million cost that it has read before", set: f.money(func(a *agentConfig) *float64 { return &a.Model.PriceCached })},
		{key: "model.price_output", fallback: "0", allowed: "0 to 1000000", example: "2",
			means: "what a million cost that it writes", set: f.money(func(a *agentConfig) *float64 { return &a.Model.PriceOut })},
	}
}

// limits bound a run.
func (f agentField) limits() []setting {
	return []setting{
		{key: "limits.rounds", fallback: strconv.Itoa(agent.DefaultToolRounds), allowed: fmt.Sprintf("1 to %d", agent.MostToolRounds), example: strconv.Itoa(agent.DefaultToolRounds),
			means: "how often a run may call tools", set: f.take(func(a *agentConfig, text string) error { return setCount(&a.Rounds, text, agent.MostToolRounds) })},
		{key: "limits.wall", fallback: "15m", allowed: "1ms to 24h", example: "15m",
			means: "wall time of a run", set: f.span(func(a *agentConfig) *time.Duration { return &a.Wall }, day)},
		{key: "limits.tool_timeout", fallback: "30s", allowed: "1ms to 1h", example: "30s",
			means: "wall time of one call of a tool; that of all calls counts too", set: f.span(func(a *agentConfig) *time.Duration { return &a.ToolTimeout }, maxDuration)},
		{key: "limits.result", fallback: "32KiB", allowed: "1KiB to 1MiB", example: "32KiB",
			means: "how much of a result is kept and shown to the model", set: f.take(func(a *agentConfig, text string) error { return setSize(&a.Result, text, 1<<10, 1<<20) })},
		{key: "limits.parallel", fallback: "8", allowed: "1 to 64", example: "8",
			means: "calls of a run at the same time, of tools that only read", set: f.take(func(a *agentConfig, text string) error { return setCount(&a.Parallel, text, 64) })},
		{key: "limits.repeats", fallback: "3", allowed: "1 to 1000", example: "3",
			means: "how often a tool is called with the same arguments, if it is none of polling_tools", set: f.take(func(a *agentConfig, text string) error { return setCount(&a.Repeats, text, 1000) })},
		{key: "limits.tokens", fallback: "none", derived: true, allowed: "1 to 1000000000000", example: "200000",
			means: "tokens of a run, read and written", set: f.take(func(a *agentConfig, text string) error { return setCount(&a.Tokens, text, 1_000_000_000_000) })},
		{key: "limits.cost", fallback: "none", derived: true, allowed: "0 to 1000000, where there is a price", example: "0.5",
			means: "what a run may cost", set: f.money(func(a *agentConfig) *float64 { return &a.Cost })},
	}
}

// threads say what is kept, and how people take part.
func (f agentField) threads() []setting {
	histories, ways := []string{historyAppend, historyReplace, historyStateless}, []string{leavingDetach, leavingCancel}
	return []setting{
		{key: "history", fallback: historyAppend, allowed: strings.Join(histories, ", "), example: historyAppend,
			means: "append adds new messages to a thread, replace takes a client's list for it, stateless keeps none", set: f.word(func(a *agentConfig) *string { return &a.History }, histories...)},
		{key: "trust_client_history", fallback: "false", allowed: "true, false", example: "false",
			means: "let clients write what assistants and tools said", set: f.truth(func(a *agentConfig) *bool { return &a.TrustHistory })},
		{key: "on_disconnect", fallback: leavingDetach, allowed: strings.Join(ways, ", "), example: leavingDetach,
			means: "a run whose client leaves goes on, or ends", set: f.word(func(a *agentConfig) *string { return &a.Leaving }, ways...)},
		{key: "approval_timeout", fallback: "24h", allowed: "1ms to 720h", example: "24h",
			means: "how long a person may take to allow a call", set: f.span(func(a *agentConfig) *time.Duration { return &a.AskFor }, 30*day)},
	}
}

const day = 24 * time.Hour

// take sets by one value.
func (f agentField) take(set func(a *agentConfig, text string) error) func(*Config, []string) error {
	return func(cfg *Config, values []string) error { return set(cfg.agent(string(f)), values[0]) }
}

// word takes a text, one of those that are allowed if there are some.
func (f agentField) word(field func(*agentConfig) *string, allowed ...string) func(*Config, []string) error {
	return f.checked(field, func(text string) error {
		if len(allowed) > 0 && !slices.Contains(allowed, text) {
			return fmt.Errorf("%s: allowed are %s", quoted(text), strings.Join(allowed, ", "))
		}
		return nil
	})
}

func (f agentField) checked(field func(*agentConfig) *string, check func(string) error) func(*Config, []string) error {
	return f.take(func(a *agentConfig, text string) error {
		if err := check(text); err != nil {
			return err
		}
		*field(a) = text
		return nil
	})
}

// tools takes names of tools.
func (f agentField) tools(field func(*agentConfig) *[]string) func(*Config, []string) error {
	return func(cfg *Config, values []string) error {
		for _, name := range values {
			if !toolPattern.MatchString(name) || strings.Contains(name, "*") {
				return fmt.Errorf("%s: a name of a tool has letters, digits, _ and -", quoted(name))
			}
		}
		*field(cfg.agent(string(f))) = values
		return nil
	}
}

func (f agentField) truth(field func(*agentConfig) *bool) func(*Config, []string) error {
	return truth(func(cfg *Config) *bool { return field(cfg.agent(string(f))) })
}

func (f agentField) span(field func(*agentConfig) *time.Duration, most time.Duration) func(*Config, []string) error {
	return f.take(func(a *agentConfig, text string) error { return setDurationUpTo(field(a), text, most) })
}

// maxMoney is the most that can be a price or a cost.
const maxMoney = 1e6

func (f agentField) money(field func(*agentConfig) *float64) func(*Config, []string) error {
	return f.take(func(a *agentConfig, text string) error {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || n < 0 || n > maxMoney {
			return fmt.Errorf("%s: a number from 0 to 1000000, such as 0.25", quoted(text))
		}
		*field(a) = n
		return nil
	})
}

// variableName is what systems take as the name of a variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// checkVariable refuses what is no name, such as the key itself, which is not repeated.
func checkVariable(name string) error {
	if !variableName.MatchString(name) {
		return errors.New("the name of a variable is wanted, and not the key itself")
	}
	return nil
}

// toolPattern is the name of a tool, or a pattern of some.
var toolPattern = regexp.MustCompile(`^[A-Za-z0-9_*-]{1,128}$`)

func checkPatterns(patterns []string) error {
	for _, p := range patterns {
		if !toolPattern.MatchString(p) {
			return fmt.Errorf("%s: a name of a tool has letters, digits, _ and -, and * for any part of it", quoted(p))
		}
		if strings.Count(p, "*") > 8 {
			return fmt.Errorf("%s: at most 8 times *", quoted(p))
		}
	}
	return nil
}
