package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/agent"
	"github.com/hutch-run/hutch/runtime/session"
)

func answered(id, payload string) event.Resume {
	if payload == "" {
		return event.Resume{InterruptID: id, Status: event.ResumeCancelled}
	}
	return event.Resume{InterruptID: id, Status: event.ResumeResolved, Payload: json.RawMessage(payload)}
}

func resumed(all ...event.Resume) agent.Input { return agent.Input{Resume: all} }

const theQuestion = `END interrupt m1:c1:ask Allow rm with {"path":"x"}?`

// askedBench is a thread with a question whether rm may be called.
func askedBench(t *testing.T, then ...says) *bench {
	b := newBench(t, append([]says{calls(`c1 rm {"path":"x"}`)}, then...)...)
	b.tools.have["rm"] = asks("removed")
	b.o.Now = time.Now
	want(t, "first run", b.turn("r1", "hi", agent.Input{}), "+round 1\nm1 calls rm as c1\nc1 with {\"path\":\"x\"}\n-round 1\n"+theQuestion)
	want(t, "called", b.made(), `rm {"path":"x"}`)
	return b
}

// E3-22: a question to a person survives a restart; what they allow is carried out once,
// with the arguments that were shown, and what they deny never.
func TestE3_22_Approvals(t *testing.T) {
	const no = `{"error":{"code":"denied","message":"not carried out: a person was asked and did not allow it","hint":"do not try again; go on without it, or ask the person what they want"}`
	for _, tt := range []struct {
		name   string
		said   string
		resume []event.Resume
		want   string // of the second run
		made   string // in it
	}{
		{"allowed", "", []event.Resume{answered("m1:c1:ask", `{"approved":true}`)}, "m1:c1:result = removed\n+round 1\nm2 says ok\n-round 1\nEND success", "!rm {\"path\":\"x\"}"},
		{"allowed, and more said", "go on", []event.Resume{answered("m1:c1:ask", `{"approved":true}`)}, "m1:c1:result = removed\n+round 1\nm2 says ok\n-round 1\nEND success", "!rm {\"path\":\"x\"}"},
		{"denied", "", []event.Resume{answered("m1:c1:ask", `{"approved":false,"why":"mine"}`)}, "m1:c1:result = " + no + `,"response":{"approved":false,"why":"mine"}}` + "\n+round 1\nm2 says ok\n-round 1\nEND success", ""},
		{"cancelled", "", []event.Resume{answered("m1:c1:ask", "")}, "m1:c1:result = " + no + "}\n+round 1\nm2 says ok\n-round 1\nEND success", ""},
		{"both", "", []event.Resume{answered("m1:c1:ask", `{"approved":true}`), answered("m1:c1:ask", "")}, "m1:c1:result = " + no + "}\n+round 1\nm2 says ok\n-round 1\nEND success", ""},
		{"both, the other way round", "", []event.Resume{answered("m1:c1:ask", ""), answered("m1:c1:ask", `{"approved":true}`)}, "m1:c1:result = " + no + "}\n+round 1\nm2 says ok\n-round 1\nEND success", ""},
		{"denied at length", "", []event.Resume{answered("m1:c1:ask", `{"approved":false,"why":"`+strings.Repeat("x", 4<<10)+`"}`)}, "m1:c1:result = " + no + "}\n+round 1\nm2 says ok\n-round 1\nEND success", ""},
		{"not answered", "well", nil, theQuestion, ""},
		{"another one answered", "", []event.Resume{answered("other", `{"approved":true}`)}, `hutch.warning {"code":"resume_unknown","message":"nothing waits for an answer to \"other\": it is ignored"}` + "\n" + theQuestion, ""},
		{"no answer", "", []event.Resume{answered("m1:c1:ask", `{"approved":"yes"}`)}, `hutch.warning {"code":"resume_payload","message":"the answer to \"m1:c1:ask\" is not {\"approved\": true} or {\"approved\": false}"}` + "\n" + theQuestion, ""},
		{"nothing in it", "", []event.Resume{answered("m1:c1:ask", `{}`)}, `hutch.warning {"code":"resume_payload","message":"the answer to \"m1:c1:ask\" is not {\"approved\": true} or {\"approved\": false}"}` + "\n" + theQuestion, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := askedBench(t, text("ok"))
			b.restart()
			b.tools.made = nil
			want(t, "second run", b.turn("r2", tt.said, resumed(tt.resume...)), tt.want)
			want(t, "called", b.made(), tt.made)
		})
	}
}

// An approval counts once: neither another run nor the same one again carries it out.
func TestE3_22_ApprovedOnce(t *testing.T) {
	b := askedBench(t, text("ok"), text("ok again"))
	yes := resumed(answered("m1:c1:ask", `{"approved":true}`))
	b.turn("r2", "", yes)
	b.turn("r2", "", yes)
	b.restart()
	out := b.turn("r3", "and", yes)
	if !strings.Contains(out, "nothing waits for an answer") || strings.Count(b.made(), "!rm") != 1 {
		t.Errorf("called %v and\n%s", b.tools.made, out)
	}
	want(t, "history", b.history(), "u-r1 user: hi\nm1 assistant [c1 rm {\"path\":\"x\"}]\nm1:c1:result tool: removed\nm2 assistant: ok\nu-r3 user: and\nm3 assistant: ok again")
}

// A question that is asked again is the same, and can be answered then.
func TestE3_22_AskedAgain(t *testing.T) {
	b := askedBench(t, text("ok"))
	want(t, "second run", b.turn("r2", "hello?", agent.Input{}), theQuestion)
	if out := b.turn("r3", "", resumed(answered("m1:c1:ask", `{"approved":true}`))); !strings.Contains(out, "removed") {
		t.Error(out)
	}
	last := b.model.asked[1].Messages
	want(t, "what the model saw", shown(last[2])+"\n"+shown(last[3]), "m1:c1:result tool: removed\nu-r2 user: hello?")
}

func TestE3_22_QuestionsExpire(t *testing.T) {
	b := askedBench(t, calls(`c2 rm {"path":"x"}`), text("ok"))
	b.o.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
	out := b.turn("r2", "", resumed(answered("m1:c1:ask", `{"approved":true}`)))
	if !strings.Contains(out, `"message":"not carried out: nobody allowed it in time"`) || !strings.Contains(out, "has just not allowed this very call") || strings.Contains(b.made(), "!") {
		t.Errorf("called %v and\n%s", b.tools.made, out)
	}
}

// Some of several questions may be answered first.
func TestE3_22_SeveralQuestions(t *testing.T) {
	b := newBench(t, calls(`c1 put {}`, `c2 rm {"n":2}`, `c3 put {}`, `c4 get {}`, `c5 rm {"n":5}`), text("ok"))
	b.tools.have["rm"] = asks("removed")
	out := b.turn("r1", "hi", agent.Input{})
	for _, has := range []string{
		"m1:c1:result = done\n", `m1:c3:result = {"error":{"code":"waits","message":"not carried out: a call before it waits for a person"`, "m1:c4:result = got\n",
		`END interrupt m1:c2:ask Allow rm with {"n":2}? m1:c5:ask Allow rm with {"n":5}?`,
	} {
		if !strings.Contains(out, has) {
			t.Errorf("there is no %s in\n%s", has, out)
		}
	}
	b.tools.made = nil
	want(t, "second run", b.turn("r2", "", resumed(answered("m1:c5:ask", `{"approved":true}`))), "m1:c5:result = removed\nEND interrupt m1:c2:ask Allow rm with {\"n\":2}?")
	out = b.turn("r3", "", resumed(answered("m1:c2:ask", `{"approved":false}`)))
	if !strings.HasSuffix(out, "m2 says ok\n-round 1\nEND success") {
		t.Error(out)
	}
	want(t, "called", b.made(), `!rm {"n":5}`)
}

// A policy that says no by then is obeyed, and not asked once more.
func TestE3_22_ThePolicyHasChanged(t *testing.T) {
	b := askedBench(t, text("ok"))
	b.tools.have["rm"] = asksAlways
	out := b.turn("r2", "", resumed(answered("m1:c1:ask", `{"approved":true}`)))
	if !strings.HasPrefix(out, `m1:c1:result = {"error":{"code":"denied"`) || !strings.HasSuffix(out, "END success") {
		t.Error(out)
	}
}

// Nobody is asked again about what they have just denied.
func TestDeniedCallsAreNotAskedAbout(t *testing.T) {
	b := askedBench(t, calls(`c2 rm { "path" : "x" }`), calls(`c3 rm {"path":"y"}`))
	out := b.turn("r2", "", resumed(answered("m1:c1:ask", `{"approved":false}`)))
	if !strings.Contains(out, `m2:c2:result = {"error":{"code":"denied","message":"not carried out: a person has just not allowed this very call"`) || !strings.HasSuffix(out, `END interrupt m3:c3:ask Allow rm with {"path":"y"}?`) {
		t.Error(out)
	}
}

// What a question shows hides nothing, and stands in one line.
func TestQuestionsShowEverything(t *testing.T) {
	b := newBench(t, calls("c1 rm {\"path\":\"a\u202eb\u200b\",\n\"n\":1}"))
	b.tools.have["rm"] = asks("removed")
	events := b.run("r1", "hi", agent.Input{})
	i := events[len(events)-1].(event.RunFinished).Outcome.Interrupts[0]
	want(t, "question", i.Message, `Allow rm with {"path":"a\u202eb\u200b",\u000a"n":1}?`)
	if i.Reason != "tool_call" || i.ToolCallID != "c1" || !json.Valid(i.ResponseSchema) || i.ExpiresAt == "" {
		t.Errorf("%+v", i)
	}
}

// C-01: a person is shown the arguments that the tool will get, and those are what it gets.
func TestQuestionsHaveResolvedArguments(t *testing.T) {
	b := newBench(t, calls(`c1 rm {"path":"X"}`), text("ok"))
	var got string
	b.tools.have["rm"] = func(_ context.Context, c tool.Call) (tool.Result, error) {
		if !c.Approved {
			return tool.Result{}, &tool.AskError{Tool: c.Name, Arguments: json.RawMessage(`{"path":"x"}`)}
		}
		got = string(c.Arguments)
		return tool.Text("removed"), nil
	}
	events := b.run("r1", "hi", agent.Input{})
	i := events[len(events)-1].(event.RunFinished).Outcome.Interrupts[0]
	want(t, "question", i.Message, `Allow rm with {"path":"x"}?`)
	b.run("r2", "", resumed(answered(i.ID, `{"approved":true}`)))
	want(t, "arguments", got, `{"path":"x"}`)
}

// What is too long to be shown is cut, and says so; what the policy asks is shown as it
// is, in one line.
func TestQuestionsAreBounded(t *testing.T) {
	b := newBench(t, calls("c1 r\u200bm {\"path\":\""+strings.Repeat("x", 3000)+"\"}", "c2 own {}"))
	b.tools.have["r\u200bm"] = asks("removed")
	b.tools.have["own"] = func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{}, &tool.AskError{Tool: c.Name, Question: "Send it\nto all?" + strings.Repeat("!", 3000)}
	}
	b.model.rounds = append(b.model.rounds, calls("c3 own {}"))
	events := b.run("r1", "hi", agent.Input{})
	i := events[len(events)-1].(event.RunFinished).Outcome.Interrupts[0]
	want(t, "question", i.Message, `Allow r\u200bm with {"path":"`+strings.Repeat("x", 1991)+"… (1011 bytes more)?")
	b.run("r2", "", resumed(answered(i.ID, "")))
	thread, err := b.store.Thread(t.Context(), session.Ref{Owner: "ann", ID: "t"})
	if err != nil || len(thread.Waiting.Person) != 1 {
		t.Fatalf("%+v, %v", thread.Waiting, err)
	}
	want(t, "question", thread.Waiting.Person[0].Message, `Send it\u000ato all?`+strings.Repeat("!", 1985)+"… (1015 bytes more)")
}

// A payload that is no JSON is no part of what the model reads.
func TestDenialsStayJSON(t *testing.T) {
	b := newBench(t, text("ok"))
	a, err := agent.New(b.model, b.tools, b.o)
	if err != nil {
		t.Fatal(err)
	}
	turn := &fakeTurn{}
	open := event.Interrupt{ID: "i", Reason: "tool_call", ToolCallID: "c1", Metadata: json.RawMessage(`{"tool":"put","arguments":"{}","message":"m"}`)}
	no := event.Resume{InterruptID: "i", Status: event.ResumeCancelled, Payload: json.RawMessage(`{"why":`)}
	if _, err := a.Run(t.Context(), turn, agent.Input{Open: []event.Interrupt{open}, Resume: []event.Resume{no}}); err != nil {
		t.Fatal(err)
	}
	if text := turn.messages[0].Content.String(); !json.Valid([]byte(text)) || turn.commits == 0 {
		t.Errorf("%d commits, and the model reads %s", turn.commits, text)
	}
}

// A question that is no call of ours is closed, and nothing happens.
func TestQuestionsOfOthers(t *testing.T) {
	b := newBench(t, text("ok"))
	for i, open := range []event.Interrupt{
		{ID: "i", Reason: "other", ToolCallID: "c1", Metadata: json.RawMessage(`{"tool":"put","arguments":"{}","message":"m"}`)},
		{ID: "i", Reason: "tool_call", Metadata: json.RawMessage(`{"tool":"put","arguments":"{}","message":"m"}`)},
		{ID: "i", Reason: "tool_call", ToolCallID: "c1", Metadata: json.RawMessage(`{}`)},
		{ID: "i", Reason: "tool_call", ToolCallID: "c1", Metadata: json.RawMessage(`{"tool":"put","arguments":"{}"}`)},
		{ID: "i", Reason: "tool_call", ToolCallID: "c1"},
	} {
		b.model.rounds = []says{text("ok")}
		a, err := agent.New(b.model, b.tools, b.o)
		if err != nil {
			t.Fatal(err)
		}
		turn := &fakeTurn{}
		out, err := a.Run(t.Context(), turn, agent.Input{Open: []event.Interrupt{open}, Resume: []event.Resume{answered("i", `{"approved":true}`)}})
		if err != nil || len(out.Interrupts) > 0 || len(b.tools.made) > 0 || !strings.Contains(told(turn.events), "is not about a call") {
			t.Errorf("%d: %+v, %v, called %v\n%s", i, out, err, b.tools.made, told(turn.events))
		}
	}
}

// E3-1, E3-2: tools of the client are handed back; calls of the server's in the same
// round are carried out before.
func TestE3_01_E3_02_ToolsOfTheClient(t *testing.T) {
	confirm := []event.Tool{{Name: "confirm", Description: "asks"}}
	b := newBench(t, deltas(append([]chat.Delta{{Text: "Wait."}}, callDeltas(`c9 confirm {"q":1}`, `c1 put {}`, `c8 confirm`)...)...), text("ok"))
	want(t, "first run", b.turn("r1", "hi", agent.Input{Functions: confirm}), `
+round 1
m1 says Wait.
m1 calls confirm as c9
c9 with {"q":1}
m1 calls put as c1
c1 with {}
m1 calls confirm as c8
c8 with {}
-round 1
m1:c1:result = done
END success [c9 c8]`)
	want(t, "second run", b.turn("r2", "", agent.Input{Functions: confirm},
		chat.Message{ID: "a9", Role: chat.Tool, ToolCallID: "c9", Content: chat.Text("yes")},
		chat.Message{ID: "a8", Role: chat.Tool, ToolCallID: "c8", Content: chat.Text("no")}), "+round 1\nm2 says ok\n-round 1\nEND success")
	want(t, "called", b.made(), "put {}")
	var saw []string
	for _, m := range b.model.asked[1].Messages {
		saw = append(saw, m.ID)
	}
	want(t, "what the model saw", strings.Join(saw, " "), "u-r1 m1 a9 m1:c1:result a8")
}

// Nothing of the client's is called with what is no JSON.
func TestBrokenCallsAreNotHandedBack(t *testing.T) {
	b := newBench(t, calls(`c9 confirm {"q`), text("ok"))
	out := b.turn("r1", "hi", agent.Input{Functions: []event.Tool{{Name: "confirm"}}})
	if !strings.Contains(out, `c9:result = {"error":{"code":"invalid_arguments"`) || !strings.HasSuffix(out, "END success") {
		t.Error(out)
	}
}

// A run ends with questions or with calls of the client: not with both.
func TestQuestionsBesideToolsOfTheClient(t *testing.T) {
	b := newBench(t, calls(`c1 rm {}`, `c9 confirm {}`))
	b.tools.have["rm"] = asks("removed")
	out := b.turn("r1", "hi", agent.Input{Functions: []event.Tool{{Name: "confirm"}}})
	if !strings.Contains(out, `m1:c1:result = {"error":{"code":"waits","message":"not carried out: it waits for a person, who cannot be asked beside`) || !strings.HasSuffix(out, "END success [c9]") {
		t.Error(out)
	}
}

// C-34: the server's tool wins; what no model would take is left out.
func TestC_34_NamesThatBothHave(t *testing.T) {
	b := newBench(t, calls(`c put {}`), text("ok"))
	out := b.turn("r", "hi", agent.Input{Functions: []event.Tool{
		{Name: "put", Description: "of the client"}, {Name: "confirm"}, {Name: "confirm", Description: "twice"}, {Name: "a b"},
		{Name: strings.Repeat("n", 65)}, {Name: "odd", Parameters: json.RawMessage(`[]`)}, {Name: "aaa", Parameters: json.RawMessage(`{"type":"object"}`)},
	}})
	want(t, "events", out, `
hutch.warning {"code":"tool_name_taken","message":"the server has a tool \"put\": the client's is not offered to the model"}
hutch.warning {"code":"tool_name_twice","message":"the client has two tools \"confirm\": the second is not offered to the model"}
hutch.warning {"code":"tool_name","message":"the client's tool \"a b\" is not offered to the model: names have 1 to 64 letters, digits, _ and -"}
hutch.warning {"code":"tool_name","message":"the client's tool \"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn… (5 bytes more)\" is not offered to the model: names have 1 to 64 letters, digits, _ and -"}
hutch.warning {"code":"tool_parameters","message":"the client's tool \"odd\" is not offered to the model: its parameters are no JSON object"}
+round 1
m1 calls put as c
c with {}
m1:c:result = done
-round 1
+round 2
m2 says ok
-round 2
END success`)
	var offered []string
	for _, f := range b.model.asked[0].Tools {
		offered = append(offered, f.Name+" "+string(f.Parameters))
	}
	want(t, "offered", strings.Join(offered, "\n"), "aaa {\"type\":\"object\"}\nconfirm {\"type\":\"object\",\"properties\":{}}\nget {\"type\":\"object\"}\nput {\"type\":\"object\"}")
}
