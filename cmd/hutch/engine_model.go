package main

import (
	"context"
	_ "embed"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/hutch-run/hutch/host/ownfile"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/strictyaml"
	"github.com/hutch-run/hutch/runtime/agent"
	"github.com/hutch-run/hutch/runtime/llm"
)

//go:embed demo/script.yaml
var demoScript []byte

// model builds the model of an agent. It makes no request.
func (m modelConfig) model(env func(string) string, log *slog.Logger) (agent.Model, error) {
	switch m.Kind {
	case modelEcho:
		return llm.NewEcho(), nil
	case modelScript:
		return m.script()
	}
	o := llm.OpenAIOptions{
		Model: m.Name, KeyFile: m.KeyFile, Idle: m.Idle, Total: m.Total,
		OnRetry: func(r llm.Retry) {
			log.Warn("a request to a model is tried again", "model", m.Name, "attempt", r.Attempt, "wait", r.Wait.Round(time.Millisecond), "error", r.Err)
		},
	}
	if m.KeyEnv != "" {
		if o.Key = env(m.KeyEnv); o.Key == "" {
			return nil, hinted(fmt.Errorf("%s: no such variable, and it is to hold the key", m.KeyEnv), "set it, or name a file as key_file")
		}
	}
	return llm.NewOpenAI(m.BaseURL, o)
}

// script is the model that plays a file.
func (m modelConfig) script() (agent.Model, error) {
	if m.Script == "" {
		return llm.ParseScript("the script that comes with hutch", demoScript)
	}
	body, err := readOwn("script", m.Script, strictyaml.MaxBytes, ownfile.Needs{})
	if err != nil {
		return nil, err
	}
	return llm.ParseScript(m.Script, body)
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
