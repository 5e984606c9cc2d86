package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/agui"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/session"
)

// visitor is an agent for one caller, as faces see it: an [agui.Engine].
type visitor struct {
	*engineAgent
	who  session.Principal
	face string
	log  interface {
		DebugContext(ctx context.Context, msg string, args ...any)
	}
}

var _ agui.Engine = visitor{}

// visit returns the agent of that name, the default one for none, for who was let in.
func (e *engine) visit(who access.Identity, name, face string) (visitor, error) {
	a, ok := e.named(name)
	if !ok {
		return visitor{}, &event.Failure{Code: "not_found", Message: fmt.Sprintf("there is no agent %s: there are %s", quoted(name), abi.OneLine(strings.Join(e.names, ", "), 400)), Cause: event.ErrNotFound}
	}
	return visitor{a, session.Principal{Name: who.Principal, ReadAll: who.Has(access.ThreadsRead)}, face, e.log}, nil
}

// opener opens the engine for a request whose path names an agent, or the default one.
func (e *engine) opener(face string) func(*http.Request) (agui.Engine, error) {
	return func(r *http.Request) (agui.Engine, error) {
		who, ok := access.From(r.Context())
		if !ok {
			return nil, nil
		}
		v, err := e.visit(who, r.PathValue("agent"), face)
		if err != nil {
			return nil, err
		}
		return v, nil
	}
}

// runErrors say what faces call what a keeper refuses; searched in order.
var runErrors = []struct {
	is   error
	code string
}{
	{session.ErrReadOnly, event.CodeForbidden},
	{session.ErrDuplicateRun, session.CodeDuplicateRun},
	{session.ErrInvalid, event.CodeInvalid},
	{session.ErrLimit, event.CodeInvalid},
	{session.ErrBusy, event.CodeBusy},
	{session.ErrClosed, event.CodeShutdown},
	{session.ErrSlow, codeSlow},
}

// codeSlow is of a stream that was read too slowly; its run goes on.
const codeSlow = "slow_reader"

// told is an error of a keeper as a peer may read it.
func toldRun(err error) error {
	for _, known := range runErrors {
		if errors.Is(err, known.is) {
			return &event.Failure{Code: known.code, Message: err.Error(), Cause: err}
		}
	}
	return err
}

// Run implements [agui.Engine].
func (v visitor) Run(ctx context.Context, in event.Input) (iter.Seq2[event.Event, error], error) {
	s, err := v.submit(ctx, in)
	if err != nil {
		return nil, toldRun(err)
	}
	return func(yield func(event.Event, error) bool) {
		defer s.Close()
		ended := play(ctx, s, yield)
		if ended || v.cfg.Leaving != leavingCancel {
			return
		}
		ref := session.Ref{Owner: v.who.Name, ID: in.ThreadID}
		if err := v.keeper.Cancel(context.WithoutCancel(ctx), v.who, ref, in.RunID); err != nil && !errors.Is(err, event.ErrNotRunning) {
			v.log.DebugContext(ctx, "a run whose client left was not cancelled", "thread", in.ThreadID, "run", in.RunID, "error", err)
		}
	}, nil
}

// play yields what a stream gives, and reports whether it is at its end.
func play(ctx context.Context, s *session.Stream, yield func(event.Event, error) bool) (ended bool) {
	for {
		item, err := s.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			yield(nil, toldRun(err))
			return errors.Is(err, session.ErrClosed)
		case item.Event != nil && !yield(item.Event, nil):
			return ends(item.Event)
		}
	}
}

func ends(e event.Event) bool {
	return e.Type() == event.TypeRunFinished || e.Type() == event.TypeRunError
}

// submit hands an input to the keeper.
func (v visitor) submit(ctx context.Context, in event.Input) (*session.Stream, error) {
	mode, err := v.mode(in.ForwardedProps)
	if err != nil {
		return nil, err
	}
	also, err := json.Marshal([]any{in.Tools, in.Context, in.Resume, in.ForwardedProps})
	if err != nil {
		return nil, err
	}
	caller := tool.Caller{
		Principal: v.who.Name, Agent: v.cfg.Name, Conversation: in.ThreadID, RunID: in.RunID,
		CallID: in.RunID, // until there is a call: what is listed is for somebody who waits
		Face:   v.face,
		Asks:   true,
	}
	return v.keeper.Submit(ctx, v.who, session.Input{
		Thread: in.ThreadID, RunID: in.RunID, Parent: in.ParentRunID, Agent: v.cfg.Name,
		Messages: in.Messages, Mode: mode, Trusted: v.cfg.TrustHistory, State: said(in.State), Also: also, Fits: v.owns,
	}, v.runner(ctx, caller, in, v.who))
}

// mode is whose history counts: an input may choose, where there is one (C-36).
func (v visitor) mode(props json.RawMessage) (session.Mode, error) {
	mode := session.Append
	if v.cfg.History == historyReplace {
		mode = session.Replace
	}
	var chosen struct {
		HistoryMode *string `json:"historyMode"`
	}
	if len(props) == 0 || json.Unmarshal(props, &chosen) != nil || chosen.HistoryMode == nil {
		return mode, nil
	}
	switch m := session.Mode(*chosen.HistoryMode); m {
	case session.Append, session.Replace:
		return m, nil
	}
	return "", &event.Failure{Code: event.CodeInvalid, Message: fmt.Sprintf("forwardedProps.historyMode: found %s, allowed are append and replace", quoted(*chosen.HistoryMode))}
}

// said is the state that a client sends, as JSON. An empty one is none: clients that have
// just begun send it, and would take away what the thread has. It may be as large as a
// request, and is not decoded for that.
func said(state json.RawMessage) json.RawMessage {
	text := bytes.TrimSpace(state)
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	if inside, is := bytes.CutPrefix(text, []byte("{")); is && bytes.HasPrefix(bytes.TrimSpace(inside), []byte("}")) {
		return nil
	}
	return state
}

// find returns a thread of this agent that the caller may read.
func (v visitor) find(ctx context.Context, id string) (session.Thread, error) {
	t, err := v.keeper.Find(ctx, v.who, id)
	if err == nil && t.Agent != v.cfg.Name {
		err = fmt.Errorf("thread %s: %w", quoted(id), event.ErrNotFound)
	}
	return t, err
}

// Events implements [agui.Engine].
func (v visitor) Events(ctx context.Context, threadID, runID string) (iter.Seq2[event.Event, error], error) {
	t, err := v.find(ctx, threadID)
	if err != nil {
		return nil, toldRun(err)
	}
	var s *session.Stream
	if runID != "" {
		s, err = v.keeper.AttachRun(ctx, v.who, t.Ref, runID)
	} else {
		s, err = v.keeper.Follow(ctx, v.who, t.Ref)
	}
	if err != nil {
		return nil, toldRun(err)
	}
	return func(yield func(event.Event, error) bool) {
		defer s.Close()
		play(ctx, s, yield)
	}, nil
}

// Cancel implements [agui.Engine].
func (v visitor) Cancel(ctx context.Context, threadID, runID string) error {
	t, err := v.find(ctx, threadID)
	if err == nil {
		err = v.keeper.Cancel(ctx, v.who, t.Ref, runID)
	}
	return toldRun(err)
}

// cursor is where a page of threads ended, as it stands in a query.
type cursor struct {
	Owner   string    `json:"o"`
	ID      string    `json:"i"`
	Updated time.Time `json:"u"`
}

func (c cursor) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(text string) (t session.Thread, err error) {
	if text == "" {
		return t, nil
	}
	var c cursor
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil || c.ID == "" {
		return t, &event.Failure{Code: event.CodeInvalid, Message: "after: found something else, allowed is the next of a page of threads"}
	}
	t.Ref, t.Updated = session.Ref{Owner: c.Owner, ID: c.ID}, c.Updated
	return t, nil
}

// threadPage is how many threads are read at once.
const threadPage = 200

// Threads implements [agui.Engine].
func (v visitor) Threads(ctx context.Context, q agui.ThreadsQuery) (page agui.ThreadPage, err error) {
	before, err := parseCursor(q.After)
	if err != nil {
		return page, err
	}
	for {
		found, err := v.keeper.Threads(ctx, v.who, v.who.ReadAll, before, threadPage)
		if err != nil {
			return page, toldRun(err)
		}
		for _, t := range found {
			if t.Agent != v.cfg.Name {
				continue
			}
			if len(page.Threads) == q.Limit {
				page.Next = cursor{before.Owner, before.ID, before.Updated}.String()
				return page, nil
			}
			page.Threads, before = append(page.Threads, v.shown(t)), t
		}
		if len(found) < threadPage {
			return page, nil
		}
		before = found[len(found)-1]
	}
}

// shown is a thread as faces show it.
func (v visitor) shown(t session.Thread) agui.Thread {
	s := agui.Thread{ID: t.ID, Title: t.Title, CreatedAt: t.Created, UpdatedAt: t.Updated, Messages: int(t.Messages), Bytes: t.Bytes}
	if run, ok := v.keeper.Active(v.who, t.Ref); ok {
		s.RunID = run.ID
	}
	return s
}

// Thread implements [agui.Engine].
func (v visitor) Thread(ctx context.Context, id string, q agui.MessagesQuery) (h agui.History, err error) {
	t, err := v.find(ctx, id)
	if err != nil {
		return h, toldRun(err)
	}
	stored, err := v.keeper.Messages(ctx, v.who, t.Ref, q.Before, q.Limit+1)
	if err != nil {
		return h, toldRun(err)
	}
	h = agui.History{Thread: v.shown(t), State: t.State, Interrupts: t.Waiting.Person}
	if h.More = len(stored) > q.Limit; h.More {
		stored = stored[1:]
	}
	h.Messages = make([]chat.Message, len(stored))
	for i, m := range stored {
		h.Messages[i] = m.Message
	}
	return h, nil
}

// Capabilities implements [agui.Engine].
func (v visitor) Capabilities(context.Context) (agui.Capabilities, error) {
	listed := v.tools.List(tool.Caller{Principal: v.who.Name, Agent: v.cfg.Name, CallID: "capabilities", Face: v.face, Asks: true})
	tools := agui.Tools{Supported: true, ParallelCalls: true, ClientProvided: true}
	for _, s := range listed {
		tools.Items = append(tools.Items, event.Tool{Name: s.Name, Description: s.Description, Parameters: s.InputSchema})
	}
	keeps := v.cfg.History != historyStateless
	return agui.Capabilities{
		Identity:       &agui.Identity{Name: v.cfg.Name, Type: "hutch", Description: v.cfg.About, Version: readBuildInfo().Version},
		Tools:          &tools,
		Output:         &agui.Output{SupportedMimeTypes: []string{"text/plain", "text/markdown"}},
		State:          &agui.State{Snapshots: true, Deltas: len(v.cfg.StateTools) > 0, PersistentState: keeps},
		Reasoning:      &agui.Reasoning{Supported: v.cfg.Model.Kind == modelOpenAI, Streaming: v.cfg.Model.Kind == modelOpenAI},
		Multimodal:     &agui.Multimodal{Input: v.cfg.Model.takesMedia()},
		Execution:      &agui.Execution{CodeExecution: len(listed) > 0, Sandboxed: true, MaxIterations: v.cfg.Rounds, MaxExecutionTime: v.cfg.Wall.Milliseconds()},
		HumanInTheLoop: &agui.HumanInTheLoop{Supported: keeps, Approvals: keeps, Interrupts: keeps},
		Custom:         map[string]json.RawMessage{agui.Reattach: json.RawMessage(strconv.FormatBool(keeps))},
	}, nil
}
