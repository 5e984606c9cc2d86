package trackerhub

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// window is how many events may be on their way to an agent, sent and not acknowledged.
const window = tracker.MaxPage

// pong answers a ping.
type pong string

var errSlow = errors.New("the peer reads too slowly")

// A writer sends events and what else there is. What it has belongs to its goroutine.
type writer struct {
	*conn
	after  int64             // events up to here have been sent once
	seen   int64             // how far the queue is known to go
	full   bool              // there may be more than the window had room for
	owed   bool              // the goroutine that waits for events wants to know where to go on
	rang   bool              // it has waited once
	flying map[string]flight // by the id of the event
}

type flight struct {
	seq int64
	due time.Time // then it is sent again
}

// write lives as long as the connection and says goodbye.
func (c *conn) write(last int64) {
	defer func() {
		c.farewell()
		// The peer has a moment to answer; then reading ends, which ends the rest.
		time.AfterFunc(goodbye, func() { _ = c.ws.Close() })
	}()
	defer c.guard()
	w := &writer{conn: c, seen: last, owed: true, flying: map[string]flight{}}
	err := w.run(last)
	w.keepAcks()
	switch {
	case err == nil:
	case errors.Is(err, errSlow):
		c.h.slow.Add(1)
		c.end(tracker.CloseSlow, "too slow: what was missed comes again")
	case c.ctx.Err() == nil:
		c.h.o.Logger.Warn("a connection to the tracker broke", "agent", c.me.Slug, "err", err)
		c.end(websocket.CloseTryAgainLater, "the tracker failed")
	}
}

func (w *writer) run(last int64) error {
	err := w.send(tracker.AuthOK{
		Type: tracker.FrameAuthOK, AgentID: w.me.ID, HeartbeatIntervalMS: w.h.o.HeartbeatEvery.Milliseconds(), Seq: last,
	})
	if err == nil {
		err = w.fetch()
	}
	ping := time.NewTicker(w.h.o.HeartbeatEvery)
	defer ping.Stop()
	again := time.NewTimer(w.h.o.AckWithin)
	defer again.Stop()
	for err == nil {
		select {
		case <-w.ctx.Done():
			return nil
		case frame := <-w.out:
			err = w.send(frame)
		case id := <-w.acks:
			err = w.ack(id)
		case <-w.rings:
			w.owed, w.rang = true, true
			err = w.fetch()
		case <-again.C:
			_, err = w.rescan()
			again.Reset(w.untilDue())
		case <-ping.C:
			err = w.beat()
		}
	}
	return err
}

// await rings when the queue has more, and waits until that was looked at.
func (c *conn) await() {
	defer c.guard()
	for {
		var seen int64
		select {
		case seen = <-c.looked:
		case <-c.ctx.Done():
			return
		}
		if err := c.service.Wait(c.ctx, seen); err != nil {
			if c.ctx.Err() == nil {
				c.h.o.Logger.Warn("a queue could not be waited for", "agent", c.me.Slug, "err", err)
				c.end(websocket.CloseTryAgainLater, "the tracker failed")
			}
			return
		}
		select {
		case c.rings <- struct{}{}:
		case <-c.ctx.Done():
			return
		}
	}
}

// fetch sends what was not sent yet, as far as there is room.
func (w *writer) fetch() error {
	sent := false
	for {
		room := window - len(w.flying)
		if w.full = room <= 0; w.full {
			return nil // acknowledgements make room, or the tenth try does
		}
		all, err := w.service.Take(w.ctx, w.after, room)
		if err != nil {
			return err
		}
		if len(all) > 0 {
			sent = true
			w.after = all[len(all)-1].Seq
			w.seen = max(w.seen, w.after)
			if err := w.deliver(all); err != nil {
				return err
			}
		}
		if len(all) < room { // whatever came since is behind what was seen, and rings
			return w.dry(sent)
		}
	}
}

// dry: nothing is left that was not sent. If it rang for nothing, then for an event that was
// put back, or for one that was taken away before it was seen; it is not waited for again.
func (w *writer) dry(sent bool) error {
	if !w.owed {
		return nil
	}
	if !sent {
		found, err := w.rescan()
		if err != nil {
			return err
		}
		if !found && w.rang {
			w.seen++
		}
	}
	w.owed = false
	w.looked <- w.seen
	return nil
}

// rescan sends again what was not acknowledged in time, and what was put back.
func (w *writer) rescan() (found bool, err error) {
	all, err := w.service.Events(w.ctx, 0, tracker.MaxPage)
	if err != nil {
		return false, err
	}
	now := time.Now()
	there := map[string]bool{}
	var again []tracker.Event
	for _, e := range all {
		there[e.ID] = true
		f, sent := w.flying[e.ID]
		if sent && !f.due.After(now) || !sent && e.Seq <= w.after && len(w.flying)+len(again) < window {
			again = append(again, e)
		}
	}
	for id, f := range w.flying { // acknowledged elsewhere
		if !there[id] && (len(all) < tracker.MaxPage || f.seq < all[len(all)-1].Seq) {
			delete(w.flying, id)
		}
	}
	if err := w.again(again); err != nil {
		return false, err
	}
	if w.full {
		return len(again) > 0, w.fetch()
	}
	return len(again) > 0, nil
}

func (w *writer) untilDue() time.Duration {
	soon := time.Now().Add(w.h.o.AckWithin)
	for _, f := range w.flying {
		if f.due.Before(soon) {
			soon = f.due
		}
	}
	return max(time.Until(soon), time.Millisecond)
}

// again counts and then sends.
func (w *writer) again(all []tracker.Event) error {
	if len(all) == 0 {
		return nil
	}
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = e.ID
	}
	parked, err := w.service.Sent(w.ctx, ids)
	if err != nil {
		return err
	}
	for i, e := range all {
		all[i].Parked = slices.Contains(parked, e.ID)
	}
	return w.deliver(all)
}

// deliver sends what was counted: an event that breaks its reader counts all the same.
func (w *writer) deliver(all []tracker.Event) error {
	for _, e := range all {
		if e.Parked {
			delete(w.flying, e.ID)
			w.h.parked.Add(1)
			w.h.o.Logger.Warn("an event was sent too often and is parked", "agent", w.me.Slug, "event", e.ID)
		}
	}
	for _, e := range all {
		if e.Parked {
			continue
		}
		w.flying[e.ID] = flight{seq: e.Seq, due: time.Now().Add(w.h.o.AckWithin)}
		if err := w.send(e.Frame(w.h.o.Names)); err != nil {
			return err
		}
	}
	return nil
}

// ack takes events away, those together that have come together.
func (w *writer) ack(id string) error {
	ids := append([]string{id}, w.waiting()...)
	if err := w.keep(ids); err != nil {
		return err
	}
	for _, id := range ids {
		delete(w.flying, id)
	}
	if w.full {
		return w.fetch()
	}
	return nil
}

// waiting are the acknowledgements that nobody has looked at yet.
func (c *conn) waiting() (ids []string) {
	for len(ids) < tracker.MaxPage {
		select {
		case id := <-c.acks:
			ids = append(ids, id)
		default:
			return ids
		}
	}
	return ids
}

// keep has the board told of acknowledgements, also when the connection ends meanwhile.
func (c *conn) keep(ids []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), boardWithin)
	defer cancel()
	return c.service.Ack(ctx, ids...)
}

// keepAcks keeps what came before the connection ended.
func (w *writer) keepAcks() {
	for ids := w.waiting(); len(ids) > 0; ids = w.waiting() {
		if w.keep(ids) != nil {
			return // they come again
		}
	}
}

// beat asks whether the peer is there, and whether it may still be.
func (w *writer) beat() error {
	if w.token != "" {
		service, err := w.h.open(w.r, w.token)
		if err != nil {
			return err
		}
		if service == nil {
			w.end(tracker.CloseAuth, "the token is valid no more")
			return nil
		}
	}
	return w.slowly(w.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(w.h.o.WriteWithin)))
}

// send writes one frame. One that was slow to be taken is the last.
func (c *conn) send(frame any) error {
	if data, ok := frame.(pong); ok {
		return c.slowly(c.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(c.h.o.WriteWithin)))
	}
	raw, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	begin := time.Now()
	// Twice the time, so that one who is merely late is told the reason.
	_ = c.ws.SetWriteDeadline(begin.Add(2 * c.h.o.WriteWithin)) // it is what the next write is told
	if err := c.ws.WriteMessage(websocket.TextMessage, raw); err != nil {
		return c.slowly(err)
	}
	if time.Since(begin) > c.h.o.WriteWithin {
		return errSlow
	}
	return nil
}

func (c *conn) slowly(err error) error {
	if timedOut(err) {
		return errSlow
	}
	return err
}
