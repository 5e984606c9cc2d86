package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/agui"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/owner"
)

// iterEvents are the events of a run. An error is the last.
type iterEvents = iter.Seq2[event.Event, error]

// talkTo returns an agent of whoever owns the state folder, which may become this
// process.
func (t *tenant) talkTo(ctx context.Context, name string) (talker, error) {
	var at *owner.Client
	var known agentList
	h, err := t.find(ctx, func(c *owner.Client) error {
		at = c
		return askOwner(ctx, state{t.cfg.State}, agentsPath, &known)
	})
	if err != nil {
		return nil, err
	}
	if h != nil {
		if err := h.app.knownAgents().check(name); err != nil {
			return nil, err
		}
		return h.app.engine.visit(access.Anyone(), name, faceChat)
	}
	if t.cfg.agentsFrom != "" && known.Digest != t.cfg.agentDigest() {
		return nil, hinted(fmt.Errorf("state %s: %v uses it with other agents than %s has", quoted(t.cfg.State), at.Owner, t.cfg.agentsFrom),
			"stop that process, leave the configuration away, or use another state folder with --%s DIR", flagState)
	}
	if err := known.check(name); err != nil {
		return nil, err
	}
	if name == "" {
		name = known.Agents[0].Name
	}
	return aguiClient{at, agentsPath + "/" + name + "/agui"}, nil
}

// agentList is what an owner tells of its agents, the default one first.
type agentList struct {
	Agents []toldAgent `json:"agents"`
	// Digest is that of their configuration.
	Digest string `json:"digest"`
}

type toldAgent struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
	Model string `json:"model"`
}

func (a *App) knownAgents() (l agentList) {
	for _, cfg := range a.cfg.Agents {
		l.Agents = append(l.Agents, toldAgent{cfg.Name, cfg.About, cfg.Model.String()})
	}
	l.Digest = a.cfg.agentDigest()
	return l
}

// check refuses the name of an agent that there is none of.
func (l agentList) check(name string) error {
	if len(l.Agents) == 0 {
		return errors.New("the owner of the state folder has no agents")
	}
	var names []string
	for _, a := range l.Agents {
		names = append(names, a.Name)
		if a.Name == name || name == "" {
			return nil
		}
	}
	return usagef("--%s: there is no agent %s", flagAgent, quoted(name)).withHint("there are: %s", oneLine(strings.Join(names, ", ")))
}

// aguiClient reaches an agent through the owner of the state folder.
type aguiClient struct {
	owner *owner.Client
	path  string
}

// maxEvent is the longest line of a stream that is read, in bytes.
const maxEvent = 16 << 20

// do sends a request and returns the answer, which is of a success.
func (c aguiClient) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(text)
	}
	resp, err := c.owner.Do(ctx, method, c.path+path, in)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &event.Failure{Code: event.CodeUnavailable, Message: c.owner.Owner.String() + " is gone: say it again", Cause: err}
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close() //nolint:errcheck // it was read only
	var no struct {
		Error struct{ Code, Message string }
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxDecision)).Decode(&no); err != nil {
		return nil, fmt.Errorf("%v: %s", c.owner.Owner, resp.Status)
	}
	switch no.Error.Code {
	case "not_found":
		return nil, event.ErrNotFound
	case "not_running":
		return nil, event.ErrNotRunning
	}
	return nil, &event.Failure{Code: no.Error.Code, Message: no.Error.Message}
}

// get asks for JSON.
func (c aguiClient) get(ctx context.Context, path string, into any) (err error) {
	resp, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	return json.NewDecoder(io.LimitReader(resp.Body, maxTold)).Decode(into)
}

// Run implements talker.
func (c aguiClient) Run(ctx context.Context, in event.Input) (iterEvents, error) {
	resp, err := c.do(ctx, http.MethodPost, "", in)
	if err != nil {
		return nil, err
	}
	return func(yield func(event.Event, error) bool) {
		defer resp.Body.Close() //nolint:errcheck // it was read only
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, maxEvent)
		for lines.Scan() {
			text, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
			if !ok {
				continue
			}
			e, err := event.Decode(text)
			if errors.Is(err, event.ErrUnknownType) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, &event.Failure{Code: event.CodeUnavailable, Message: "the answer was cut off: look at the thread again", Cause: err})
		}
	}, nil
}

// Cancel implements talker.
func (c aguiClient) Cancel(ctx context.Context, threadID, runID string) error {
	resp, err := c.do(ctx, http.MethodPost, "/threads/"+url.PathEscape(threadID)+"/cancel", map[string]string{"runId": runID})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Thread implements talker.
func (c aguiClient) Thread(ctx context.Context, id string, q agui.MessagesQuery) (h agui.History, err error) {
	err = c.get(ctx, "/threads/"+url.PathEscape(id)+"?limit="+strconv.Itoa(q.Limit), &h)
	return h, err
}

// Capabilities implements talker.
func (c aguiClient) Capabilities(ctx context.Context) (can agui.Capabilities, err error) {
	err = c.get(ctx, "/capabilities", &can)
	return can, err
}
