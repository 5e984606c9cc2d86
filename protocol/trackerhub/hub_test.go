package trackerhub_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerhub"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(benchServer); folder != "" {
		if err := serveTracker(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// liveness is how long what must happen may take; it decides nothing else.
const liveness = 20 * time.Second

// A site is a board with the chat "team", the human ann and the agents coder and other, and
// a hub before it. Tokens are slugs; those in gone are nobody's.
type site struct {
	*testing.T
	b   *board.Board
	hub *trackerhub.Hub
	url string

	mu   sync.Mutex
	gone map[string]bool
}

func newSite(t *testing.T, o trackerhub.Options) *site {
	t.Helper()
	s := &site{T: t, b: board.New(&boardtest.Memory{Again: true}, board.Options{}), gone: map[string]bool{}}
	for slug, kind := range map[string]tracker.Kind{"ann": tracker.Human, "coder": tracker.Agent, "other": tracker.Agent} {
		_, err := s.b.Ensure(t.Context(), tracker.CreateMember{Slug: slug, Kind: kind})
		must(t, err)
	}
	_, err := s.as("ann").CreateChat(t.Context(), tracker.CreateChat{Slug: "team"})
	must(t, err)
	s.hub = trackerhub.New(s.open, o)
	server := httptest.NewServer(s.hub)
	s.url = "ws" + strings.TrimPrefix(server.URL, "http")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), liveness)
		defer cancel()
		must(t, s.hub.Close(ctx))
		server.Close()
	})
	return s
}

func (s *site) open(_ *http.Request, token string) (tracker.Service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone[token] {
		return nil, nil
	}
	slug, lacks, _ := strings.Cut(token, "-")
	if !slices.Contains([]string{"ann", "coder", "other"}, slug) && !strings.HasPrefix(slug, "agent") {
		return nil, nil
	}
	return s.as(slug, lacks), nil
}

func (s *site) as(slug string, without ...string) tracker.Service {
	all := []string{
		tracker.TasksRead, tracker.TasksWrite, tracker.TasksTake, tracker.MessagesRead, tracker.MessagesWrite,
		tracker.MembersRead, tracker.MembersSelf, tracker.Admin,
	}
	return s.b.For(tracker.Caller{Slug: slug, Scopes: slices.DeleteFunc(all, func(x string) bool { return slices.Contains(without, x) })})
}

// say has ann write to the chat.
func (s *site) say(content string) {
	s.Helper()
	_, err := s.as("ann").SendMessage(s.Context(), tracker.SendMessage{ChatID: "team", Content: content})
	must(s.T, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A peer is the agent's end of a socket.
type peer struct {
	*testing.T
	ws *websocket.Conn
}

func (s *site) dial(h http.Header) *peer {
	s.Helper()
	ws, r, err := websocket.DefaultDialer.DialContext(s.Context(), s.url, h)
	must(s.T, err)
	_ = r.Body.Close()
	s.Cleanup(func() { _ = ws.Close() })
	return &peer{T: s.T, ws: ws}
}

// enter connects an agent.
func (s *site) enter(slug string) *peer {
	s.Helper()
	p := s.dial(nil)
	p.send(`{"type":"auth","token":"` + slug + `","agent":{"name":"` + slug + `","slug":"` + slug + `","capabilities":["coding"]}}`)
	if got := p.next(); got.Type != tracker.FrameAuthOK || got.AgentID == "" || got.HeartbeatIntervalMS <= 0 {
		s.Fatalf("got %+v, want auth.ok", got)
	}
	return p
}

func (p *peer) send(frame string) {
	p.Helper()
	must(p.T, p.ws.WriteMessage(websocket.TextMessage, []byte(frame)))
}

// A got is a frame of any type.
type got struct {
	Type, ID, Event, Message, Code string
	Data                           struct{ Content, Reason string }
	Seq                            int64
	Redelivery                     int
	AgentID                        string `json:"agent_id"`
	HeartbeatIntervalMS            int64  `json:"heartbeat_interval_ms"`
	ClientMsgID                    string `json:"client_msg_id"`
	MessageID                      string `json:"message_id"`
}

func (p *peer) read() (g got, err error) {
	_ = p.ws.SetReadDeadline(time.Now().Add(liveness))
	_, raw, err := p.ws.ReadMessage()
	if err == nil {
		err = json.Unmarshal(raw, &g)
	}
	return g, err
}

// next is the next frame that is not about who is online.
func (p *peer) next() got {
	p.Helper()
	for {
		g, err := p.read()
		must(p.T, err)
		if g.Event != tracker.EventAgentStatus {
			return g
		}
	}
}

func (p *peer) ack(id string) { p.Helper(); p.send(`{"type":"ack","id":"` + id + `"}`) }

// said wants a chat message.
func (p *peer) said(content string) got {
	p.Helper()
	g := p.next()
	if g.Type != tracker.FrameEvent || g.Event != tracker.EventChatMessage || g.Data.Content != content {
		p.Fatalf("got %+v, want the message %q", g, content)
	}
	return g
}

// kept waits until an acknowledgement has taken its event away: a connection that is cut
// may lose those on their way.
func (s *site) kept(slug, id string) {
	s.Helper()
	eventually(s.T, "the acknowledgement", func() bool {
		all, err := s.as(slug).Events(s.Context(), 0, tracker.MaxPage)
		must(s.T, err)
		return !slices.ContainsFunc(all, func(e tracker.Event) bool { return e.ID == id })
	})
}

// closed wants the connection to end with a code.
func (p *peer) closed(code int) {
	p.Helper()
	for {
		_, err := p.read()
		var c *websocket.CloseError
		switch {
		case err == nil:
		case errors.As(err, &c) && c.Code == code:
			return
		default:
			p.Fatalf("got %v, want the connection closed with %d", err, code)
		}
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(liveness); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

func (s *site) presence(slug string) tracker.Presence {
	m, err := s.as("ann").GetMember(s.Context(), slug)
	must(s.T, err)
	return m.Presence
}

func TestH_01_WhoIsLetIn(t *testing.T) {
	s := newSite(t, trackerhub.Options{Origins: []string{"https://desk.example"}})
	for _, tt := range []struct {
		name, frame string
	}{
		{"nobody", `{"type":"auth","token":"x","agent":{"slug":"x"}}`},
		{"no token", `{"type":"auth","agent":{"slug":"coder"}}`},
		{"another's slug", `{"type":"auth","token":"coder","agent":{"slug":"other"}}`},
		{"a human", `{"type":"auth","token":"ann","agent":{"slug":"ann"}}`},
		{"without a scope", `{"type":"auth","token":"coder-messages:read","agent":{"slug":"coder"}}`},
		{"another frame first", `{"type":"heartbeat","token":"coder"}`},
		{"no JSON", `auth`},
		{"no UTF-8", "{\"type\":\"auth\",\"token\":\"coder\",\"agent\":{\"slug\":\"coder\",\"name\":\"\xff\"}}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := s.dial(nil)
			p.send(tt.frame)
			if g := p.next(); g.Type != tracker.FrameAuthError || g.Message == "" {
				t.Fatalf("got %+v, want auth.error", g)
			}
			p.closed(tracker.CloseAuth)
		})
	}
	t.Run("binary", func(t *testing.T) {
		p := s.dial(nil)
		must(t, p.ws.WriteMessage(websocket.BinaryMessage, []byte(`{"type":"auth","token":"coder","agent":{"slug":"coder"}}`)))
		if g := p.next(); g.Type != tracker.FrameAuthError {
			t.Fatalf("got %+v, want auth.error", g)
		}
		p.closed(tracker.CloseAuth)
	})
	t.Run("token at the upgrade", func(t *testing.T) {
		p := s.dial(http.Header{"Authorization": {"Bearer coder"}})
		p.send(`{"type":"auth","agent":{"slug":"coder"}}`)
		if g := p.next(); g.Type != tracker.FrameAuthOK {
			t.Fatalf("got %+v", g)
		}
	})
	for _, tt := range []struct {
		name   string
		header http.Header
		want   int
	}{
		{"wrong token at the upgrade", http.Header{"Authorization": {"Bearer x"}}, http.StatusUnauthorized},
		{"a page that nobody named", http.Header{"Origin": {"https://evil.example"}}, http.StatusForbidden},
		{"a page of two origins", http.Header{"Origin": {"https://desk.example", "https://evil.example"}}, http.StatusForbidden},
		{"a page that was named", http.Header{"Origin": {"https://desk.example"}}, http.StatusSwitchingProtocols},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws, r, err := websocket.DefaultDialer.DialContext(t.Context(), s.url, tt.header)
			if err == nil {
				_ = ws.Close()
			}
			if r == nil || r.StatusCode != tt.want {
				t.Fatalf("got %v %v, want %d", r, err, tt.want)
			}
			_ = r.Body.Close()
		})
	}
}

func TestH_01_AuthHasATime(t *testing.T) {
	s := newSite(t, trackerhub.Options{AuthWithin: time.Millisecond})
	s.dial(nil).closed(tracker.CloseAuthTimeout)
}

func TestH_01_ASecondAuthIsIgnored(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	p := s.enter("coder")
	p.send(`{"type":"auth","token":"other","agent":{"slug":"other"}}`)
	if g := p.next(); g.Type != tracker.FrameAuthError {
		t.Fatalf("got %+v, want auth.error", g)
	}
	s.say("still here")
	p.said("still here")
	if got := s.presence("other"); got != tracker.Offline {
		t.Fatalf("the other agent is %s", got)
	}
}

func TestH_01_ASecondConnectionReplacesTheFirst(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	first := s.enter("coder")
	second := s.enter("coder")
	first.closed(tracker.CloseSuperseded)
	eventually(t, "the end of the first", func() bool { return s.hub.Stats().Connections == 1 })
	if got := s.presence("coder"); got != tracker.Online {
		t.Fatalf("the agent is %s while its second connection stands", got)
	}
	s.say("to the second")
	second.said("to the second")
	must(t, second.ws.Close())
	eventually(t, "offline", func() bool { return s.presence("coder") == tracker.Offline })
}

func TestH_02_PresenceAndPings(t *testing.T) {
	s := newSite(t, trackerhub.Options{HeartbeatEvery: 5 * time.Millisecond, OfflineAfter: 200 * time.Millisecond})
	p := s.enter("coder")
	p.send(`{"type":"heartbeat","status":"busy","current_tasks":["TE-1"]}`)
	eventually(t, "busy", func() bool {
		m, err := s.as("ann").GetMember(t.Context(), "coder")
		must(t, err)
		return m.Activity == tracker.Busy && m.Presence == tracker.Online && slices.Equal(m.CurrentTasks, []string{"TE-1"})
	})
	p.send(`{"type":"heartbeat","status":"asleep"}`)
	if g := p.next(); g.Type != tracker.FrameError || g.Code != tracker.CodeInvalid {
		t.Fatalf("got %+v, want an error", g)
	}
	// Who answers no ping is gone: this peer does not read from here on.
	eventually(t, "the end of a dead peer", func() bool { return s.hub.Stats().Connections == 0 })
	if got := s.presence("coder"); got != tracker.Offline {
		t.Fatalf("the agent is %s", got)
	}
}

func TestH_03_UntilAcknowledged(t *testing.T) {
	s := newSite(t, trackerhub.Options{AckWithin: 20 * time.Millisecond})
	p := s.enter("coder")
	s.say("one")
	first := p.said("one")
	if first.Redelivery != 0 || first.Seq == 0 {
		t.Fatalf("got %+v", first)
	}
	for n := 1; n < tracker.MaxTries; n++ {
		if again := p.said("one"); again.ID != first.ID || again.Redelivery != n {
			t.Fatalf("delivery %d: got %+v", n, again)
		}
	}
	eventually(t, "parking", func() bool { return s.hub.Stats().Parked > 0 })
	s.say("two") // what is parked blocks nothing
	two := p.said("two")
	p.ack("an id that nobody knows")
	p.ack(two.ID)
	s.kept("coder", two.ID)
	parked, err := s.as("coder").Parked(t.Context(), "coder", tracker.Paging{})
	must(t, err)
	if !slices.ContainsFunc(parked.Items, func(e tracker.Event) bool { return e.ID == first.ID }) {
		t.Fatalf("parked are %+v", parked.Items)
	}
	must(t, s.as("coder").Redrive(t.Context(), "coder", first.ID))
	if again := p.said("one"); again.ID != first.ID || again.Redelivery != 0 {
		t.Fatalf("redriven: got %+v", again)
	}
}

func TestH_03_ReplayInOrder(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	const many = 2*tracker.MaxPage + 50
	for n := range many {
		s.say(fmt.Sprint(n))
	}
	p := s.enter("coder")
	ids := make([]string, many)
	for n := range many / 2 {
		ids[n] = p.said(fmt.Sprint(n)).ID
		if n < 100 {
			p.ack(ids[n])
		} else if n == 150 {
			break // 50 are on their way and not acknowledged
		}
	}
	s.kept("coder", ids[99])
	must(t, p.ws.Close())
	eventually(t, "the end", func() bool { return s.hub.Stats().Connections == 0 })

	p = s.enter("coder")
	last := int64(0)
	for n := 100; n < many; n++ {
		g := p.said(fmt.Sprint(n))
		if ids[n] != "" && (g.ID != ids[n] || g.Redelivery == 0) || g.Seq <= last {
			t.Fatalf("message %d: got %+v behind %d, want the id %s again", n, g, last, ids[n])
		}
		last = g.Seq
		p.ack(g.ID)
	}
}

func TestH_03_WhatIsAcknowledgedLastCounts(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	p := s.enter("coder")
	const many = 50
	ids := make([]string, many)
	for n := range many {
		s.say(fmt.Sprint(n))
		ids[n] = p.said(fmt.Sprint(n)).ID
	}
	for _, id := range ids {
		p.ack(id)
	}
	must(t, p.ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")))
	eventually(t, "the end", func() bool { return s.hub.Stats().Connections == 0 })
	all, err := s.as("coder").Events(t.Context(), 0, tracker.MaxPage)
	must(t, err)
	if len(all) > 0 {
		t.Fatalf("%d of %d acknowledgements were lost", len(all), many)
	}
}

func TestH_03_NoMoreThanTheWindow(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	for n := range tracker.MaxPage + 5 {
		s.say(fmt.Sprint(n))
	}
	p := s.enter("coder")
	var first got
	for n := range tracker.MaxPage {
		if g := p.said(fmt.Sprint(n)); n == 0 {
			first = g
		}
	}
	p.send(`{"type":"chat.send","chat_id":"nowhere","content":"x","client_msg_id":"fence"}`)
	if g := p.next(); g.ClientMsgID != "fence" {
		t.Fatalf("got %+v before anything was acknowledged", g)
	}
	p.ack(first.ID)
	p.said(fmt.Sprint(tracker.MaxPage))
}

func TestH_04_Resume(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	p := s.enter("coder")
	s.say("one")
	s.say("two")
	one := p.said("one")
	p.said("two")
	must(t, p.ws.Close())
	eventually(t, "the end", func() bool { return s.hub.Stats().Connections == 0 })
	p = s.dial(nil)
	p.send(fmt.Sprintf(`{"type":"auth","token":"coder","agent":{"slug":"coder"},"resume":{"last_seq":%d}}`, one.Seq))
	p.next()
	two := p.said("two")
	p.ack(two.ID)
	s.kept("coder", two.ID)
	must(t, p.ws.Close())
	eventually(t, "the end", func() bool { return s.hub.Stats().Connections == 0 })
	p = s.dial(nil)
	p.send(`{"type":"auth","token":"coder","agent":{"slug":"coder"},"resume":{"last_seq":999999}}`)
	p.next()
	if g := p.next(); g.Event != tracker.EventResync || g.Data.Reason != "unknown_cursor" {
		t.Fatalf("got %+v, want resync", g)
	}
	s.say("three")
	p.said("three")
}

func TestH_07_ChatSendIsAnswered(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	p := s.enter("coder")
	const frame = `{"type":"chat.send","chat_id":"team","content":"hello","mentions":["ann"],"client_msg_id":"m1"}`
	p.send(frame)
	first := p.next()
	if first.Type != tracker.FrameChatSent || first.ClientMsgID != "m1" || first.MessageID == "" {
		t.Fatalf("got %+v, want chat.sent", first)
	}
	p.send(frame)
	if again := p.next(); again.MessageID != first.MessageID {
		t.Fatalf("sent twice: got %+v, want %+v", again, first)
	}
	p.send(`{"type":"chat.send","chat_id":"nowhere","content":"hello","client_msg_id":"m2"}`)
	if g := p.next(); g.Type != tracker.FrameError || g.ClientMsgID != "m2" || g.Code != tracker.CodeNotFound {
		t.Fatalf("got %+v, want an error", g)
	}
}

func TestE0_09_BadFrames(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	t.Run("unknown types are counted", func(t *testing.T) {
		p := s.enter("coder")
		p.send(`{"type":"dance"}`)
		p.send(`{}`)
		p.send(`{"type":"ack","id":7}`)
		if g := p.next(); g.Type != tracker.FrameError || g.Code != tracker.CodeInvalid {
			t.Fatalf("got %+v, want an error", g)
		}
		if n := s.hub.Stats().Unknown; n != 2 {
			t.Fatalf("%d unknown frames were counted, want 2", n)
		}
		p.send(`{"type":`)
		if g := p.next(); g.Code != tracker.CodeBadRequest {
			t.Fatalf("got %+v, want an error", g)
		}
		s.say("still here")
		p.said("still here")
	})
	t.Run("binary", func(t *testing.T) {
		p := s.enter("coder")
		must(t, p.ws.WriteMessage(websocket.BinaryMessage, []byte(`{"type":"dance"}`)))
		p.closed(websocket.CloseUnsupportedData)
	})
	t.Run("no UTF-8", func(t *testing.T) {
		p := s.enter("coder")
		p.send("{\"type\":\"\xff\"}")
		p.closed(websocket.CloseInvalidFramePayloadData)
	})
	t.Run("64 MiB", func(t *testing.T) {
		p := s.enter("coder")
		_ = p.ws.WriteMessage(websocket.TextMessage, make([]byte, 64<<20)) // it is cut off on its way
		eventually(t, "the end", func() bool { return s.hub.Stats().Connections == 0 })
	})
	t.Run("one byte too large", func(t *testing.T) {
		const most = 6*tracker.MaxMessage + 64<<10
		p := s.enter("coder")
		before := s.hub.Stats().Unknown
		p.send(`{"type":"dance","x":"` + strings.Repeat("x", most-23) + `"}`)
		eventually(t, "taking what is just small enough", func() bool { return s.hub.Stats().Unknown > before })
		p.send(`{"type":"dance","x":"` + strings.Repeat("x", most-22) + `"}`)
		p.closed(websocket.CloseMessageTooBig)
	})
	t.Run("too large of a stranger", func(t *testing.T) {
		p := s.dial(nil)
		p.send(`{"type":"auth","token":"coder","x":"` + strings.Repeat("x", 16<<10) + `"}`)
		p.closed(websocket.CloseMessageTooBig)
	})
}

func TestE0_08_ASlowReaderIsDroppedAndRecovers(t *testing.T) {
	s := newSite(t, trackerhub.Options{WriteWithin: time.Second})
	p := s.enter("coder")
	fast := s.enter("other")
	content := strings.Repeat("x", tracker.MaxMessage)
	const many = 180 // more than all buffers between the two ends take
	for range many {
		s.say(content)
		fast.ack(fast.said(content).ID)
	}
	eventually(t, "the end of the slow one", func() bool { return s.hub.Stats().Slow == 1 })
	must(t, p.ws.Close())
	p = s.enter("coder")
	for range many {
		p.ack(p.said(content).ID)
	}
}

// unavailable wants that nobody more is let in.
func (s *site) unavailable() {
	s.Helper()
	_, r, err := websocket.DefaultDialer.DialContext(s.Context(), s.url, nil)
	if err == nil || r == nil || r.StatusCode != http.StatusServiceUnavailable {
		s.Fatalf("got %v %v, want 503", r, err)
	}
	_ = r.Body.Close()
}

func TestNoMoreThanTheMost(t *testing.T) {
	s := newSite(t, trackerhub.Options{Most: 2, Strangers: 1})
	refused := s.unavailable
	for range 3 { // who comes and goes leaves no room for more strangers
		must(t, s.enter("coder").ws.Close())
		eventually(t, "the end", func() bool { return s.hub.Stats().Connections == 0 })
	}
	p := s.dial(nil)
	refused() // a second stranger
	p.send(`{"type":"auth","token":"coder","agent":{"slug":"coder"}}`)
	p.next()
	s.enter("other")
	refused() // a third connection
}
