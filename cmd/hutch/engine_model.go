package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/hutch-run/hutch/host/ownfile"
	"github.com/hutch-run/hutch/protocol/agui"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/strictyaml"
	"github.com/hutch-run/hutch/runtime/agent"
	"github.com/hutch-run/hutch/runtime/llm"
	"github.com/hutch-run/hutch/runtime/script"
)

//go:embed demo/script.yaml
var demoScript []byte

// modelConfig is the model of an agent.
type modelConfig struct {
	Kind string
	// What follows is of openai.
	BaseURL, Name   string
	KeyEnv, KeyFile string
	Idle, Total     time.Duration
	MaxAnswer       int // tokens
	// Parts are the kinds of parts besides text that it takes. Usage asks for what it used.
	// Extra are further members of each request.
	Parts []string
	Usage bool
	Extra map[string]json.RawMessage
	// Price is what a million tokens cost.
	PriceIn, PriceCached, PriceOut float64
	// Script is the file of script; empty is the one that comes with hutch.
	Script string
}

// Kinds of models.
const (
	modelOpenAI = "openai"
	modelScript = "script"
	modelEcho   = "echo"
)

func modelKinds() []string { return []string{modelOpenAI, modelScript, modelEcho} }

// takes reports whether a key of an agent goes with this kind of model.
func (m modelConfig) takes(key string) bool {
	switch key {
	case "model.base_url", "model.name", "model.key_env", "model.key_file", "model.idle", "model.total", "model.max_answer", "model.parts", "model.usage", "model.extra":
		return m.Kind == modelOpenAI
	case "model.script":
		return m.Kind == modelScript
	}
	return true
}

const defaultBaseURL = "https://api.openai.com/v1"

// checkBaseURL refuses what no model can stand behind.
func checkBaseURL(text string) error {
	m, err := llm.NewOpenAI(text, llm.OpenAIOptions{})
	if err == nil {
		m.Close()
	}
	return err
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

// model builds the model. It makes no request.
func (m modelConfig) model(env func(string) string, log *slog.Logger) (agent.Model, error) {
	switch m.Kind {
	case modelEcho:
		return script.NewEcho(), nil
	case modelScript:
		return m.script()
	}
	o := llm.OpenAIOptions{
		Model: m.Name, KeyFile: m.KeyFile, Idle: m.Idle, Total: m.Total, NoUsage: !m.Usage, Extra: m.Extra,
		Parts: append([]string{}, m.Parts...), // of none, where nil were the default
		OnRetry: func(r llm.Retry) {
			log.Warn("a request to a model is tried again", "model", m.Name, "attempt", r.Attempt, "wait", r.Wait.Round(time.Millisecond), "error", r.Err)
		},
	}
	if m.KeyEnv != "" {
		if o.Key = env(m.KeyEnv); o.Key == "" {
			return nil, hinted(fmt.Errorf("%s is not set, and it is to hold the key", m.KeyEnv), "set it, or name a file as key_file")
		}
	}
	if m.KeyFile != "" {
		if _, err := readOwn("key", m.KeyFile, maxKeyFile, ownfile.Needs{Private: true}); err != nil {
			return nil, err
		}
	}
	return llm.NewOpenAI(m.BaseURL, o)
}

// modelParts are the kinds of parts besides text that a model can take.
func modelParts() []string { return []string{"image", "audio", "document"} }

// noParts stands for none of them.
const noParts = "none"

// setParts takes kinds of parts.
func (m *modelConfig) setParts(kinds []string) error {
	if slices.Equal(kinds, []string{noParts}) {
		m.Parts = nil
		return nil
	}
	for _, k := range kinds {
		if !slices.Contains(modelParts(), k) {
			return fmt.Errorf("%s: allowed are %s, or %s alone", quoted(k), strings.Join(modelParts(), ", "), noParts)
		}
	}
	m.Parts = kinds
	return nil
}

// setExtra takes members of a request, each NAME=JSON.
func (m *modelConfig) setExtra(members []string) error {
	m.Extra = map[string]json.RawMessage{}
	for _, one := range members {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" || m.Extra[name] != nil || !json.Valid([]byte(value)) {
			return fmt.Errorf("%s: write NAME=JSON, such as temperature=0.2, and each name once", quoted(one))
		}
		m.Extra[name] = json.RawMessage(value)
	}
	return llm.CheckExtra(m.Extra)
}

// takesMedia says what of messages the model takes besides text.
func (m modelConfig) takesMedia() (in agui.MediaInput) {
	if m.Kind == modelOpenAI {
		in.Image, in.Audio, in.PDF = slices.Contains(m.Parts, "image"), slices.Contains(m.Parts, "audio"), slices.Contains(m.Parts, "document")
	}
	return in
}

// maxKeyFile is the largest file with a key, in bytes.
const maxKeyFile = 16 << 10

// check builds the model and lets it go; key is the one that is wrong.
func (m modelConfig) check(env func(string) string) (key string, err error) {
	made, err := m.model(env, slog.New(slog.DiscardHandler))
	if closer, ok := made.(interface{ Close() }); ok && err == nil {
		closer.Close()
	}
	switch {
	case m.Kind == modelScript:
		return "script", err
	case m.KeyEnv != "":
		return "key_env", err
	case m.KeyFile != "":
		return "key_file", err
	}
	return "base_url", err
}

// script is the model that plays a file.
func (m modelConfig) script() (agent.Model, error) {
	if m.Script == "" {
		return script.Parse("the script that comes with hutch", demoScript)
	}
	body, err := readOwn("script", m.Script, strictyaml.MaxBytes, ownfile.Needs{})
	if err != nil {
		return nil, err
	}
	return script.Parse(m.Script, body)
}

// A lostModel is one that could not be built where that must not keep hutch from
// starting: its agent's runs fail, and say why to nobody but the log.
type lostModel struct{}

// Stream implements [agent.Model].
func (lostModel) Stream(context.Context, chat.Request) iter.Seq2[chat.Delta, error] {
	return func(yield func(chat.Delta, error) bool) {
		yield(chat.Delta{}, fmt.Errorf("%w: the agent's model is not set up, and the log of hutch says why", chat.ErrUnavailable))
	}
}
