package trackerhub_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerhub"
)

// raw writes bytes below the frames.
func (p *peer) raw(b ...byte) {
	p.Helper()
	_, err := p.ws.NetConn().Write(b)
	must(p.T, err)
}

// frame is one as RFC 6455 has it (section 5.2), masked with zeros.
func frame(first byte, payload string) []byte {
	head := []byte{first}
	switch n := len(payload); {
	case n < 126:
		head = append(head, 0x80|byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 0x80|126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 0x80|127), uint64(n))
	}
	return append(append(head, 0, 0, 0, 0), payload...)
}

// What a frame of the tracker is cut into does not matter, a ping between the parts neither;
// how large all of them are does.
func TestE0_09_FragmentedFrames(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	p := s.enter("coder")
	const whole = `{"type":"chat.send","chat_id":"team","content":"in parts","client_msg_id":"m1"}`
	p.raw(frame(0x01, "")...)
	for i := range len(whole) {
		p.raw(frame(0x00, whole[i:i+1])...)
		if i == 10 {
			p.raw(frame(0x89, "ping")...)
		}
	}
	p.raw(frame(0x80, "")...)
	if g := p.next(); g.Type != tracker.FrameChatSent || g.ClientMsgID != "m1" {
		t.Fatalf("got %+v, want chat.sent", g)
	}
	const most = 6*tracker.MaxMessage + 64<<10
	before := s.hub.Stats().Unknown
	just := `{"type":"dance","x":"` + strings.Repeat("x", most-23) + `"}`
	p.raw(frame(0x01, just[:100])...)
	p.raw(frame(0x80, just[100:])...)
	eventually(t, "taking parts that are just small enough", func() bool { return s.hub.Stats().Unknown > before })
	p.raw(frame(0x01, just[:100])...)
	p.raw(frame(0x80, just[100:]+"x")...)
	p.closed(websocket.CloseMessageTooBig)
}

// Who breaks the protocol of sockets is told so, and loses the connection.
func TestE0_09_FramesThatAreNone(t *testing.T) {
	var squeezed bytes.Buffer
	w, err := flate.NewWriter(&squeezed, flate.BestCompression)
	must(t, err)
	_, err = io.WriteString(w, `{"type":"auth"}`)
	must(t, errors.Join(err, w.Flush()))
	s := newSite(t, trackerhub.Options{})
	for name, sent := range map[string][]byte{
		"compressed":                  frame(0xc1, squeezed.String()),
		"not masked":                  []byte("\x81\x02{}"),
		"of a kind that there is not": frame(0x83, "{}"),
		"a part of nothing":           frame(0x80, "{}"),
		"begun within another":        append(frame(0x01, "{"), frame(0x01, "{")...),
		"a ping in parts":             frame(0x09, "x"),
		"a ping too large":            frame(0x89, strings.Repeat("x", 126)),
		"a close of a wrong code":     frame(0x88, "\x00\x01"),
		"with a length below zero":    append([]byte{0x81, 0xff}, bytes.Repeat([]byte{0xff}, 12)...),
	} {
		t.Run(name, func(t *testing.T) {
			p := s.enter("coder")
			p.T = t
			p.raw(sent...)
			for {
				_, err := p.read()
				var c *websocket.CloseError
				if errors.As(err, &c) && (c.Code == websocket.CloseProtocolError || c.Code == websocket.CloseMessageTooBig) {
					break
				}
				if err != nil {
					t.Fatalf("got %v, want the connection closed for its protocol", err)
				}
			}
			eventually(t, "the end", func() bool { return s.hub.Stats().Connections == 0 })
		})
	}
	s.say("still here") // the others have noticed nothing
	s.enter("other").said("still here")
}

// Nobody is made to unpack what others have packed: compression is not agreed on.
func TestE0_09_NothingIsCompressed(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	d := websocket.Dialer{EnableCompression: true}
	ws, r, err := d.DialContext(t.Context(), s.url, nil)
	must(t, err)
	_ = r.Body.Close()
	defer func() { _ = ws.Close() }()
	if r.StatusCode != http.StatusSwitchingProtocols || r.Header.Get("Sec-Websocket-Extensions") != "" {
		t.Fatalf("agreed on %v", r.Header)
	}
}

// Who sends without reading is no burden: its answers wait, and so does it.
func TestE0_08_WhoSendsWithoutReadingWaits(t *testing.T) {
	s := newSite(t, trackerhub.Options{WriteWithin: 100 * time.Millisecond})
	p := s.enter("coder")
	flood := []byte(strings.Repeat("x", 60_000))
	begin := time.Now()
	for {
		_ = p.ws.SetWriteDeadline(time.Now().Add(liveness)) // the write says if it broke
		body := `{"type":"chat.send","chat_id":"nowhere","content":"x","client_msg_id":"` + string(flood) + `"}`
		if p.ws.WriteMessage(websocket.TextMessage, []byte(body)) != nil {
			break // it was dropped
		}
		if time.Since(begin) > liveness {
			t.Fatal("it may send for ever")
		}
	}
	eventually(t, "the end", func() bool { return s.hub.Stats().Connections == 0 })
	if n := s.hub.Stats().Slow; n != 1 {
		t.Errorf("%d were too slow, want 1", n)
	}
	s.say("hello")
	s.enter("other").said("hello")
}

// Who was told goodbye says nothing more, though its socket is read for a moment yet.
func TestH_01_NothingIsHeardAfterGoodbye(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	first := s.enter("coder")
	first.ws.SetCloseHandler(func(int, string) error { return nil }) // it does not answer, and so may go on
	second := s.enter("coder")
	first.closed(tracker.CloseSuperseded)
	first.send(`{"type":"chat.send","chat_id":"team","content":"a ghost","client_msg_id":"m"}`)
	eventually(t, "the end of the first", func() bool { return s.hub.Stats().Connections == 1 })
	said, err := s.as("ann").ListMessages(t.Context(), tracker.MessageQuery{ChatID: "team"})
	must(t, err)
	if len(said.Items) > 0 {
		t.Fatalf("kept was %+v", said.Items)
	}
	s.say("hello")
	second.said("hello")
}
