package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/store"
	"github.com/hutch-run/hutch/runtime/store/storetest"
)

// A wire is between the store and its server, and breaks when it is told to.
type wire struct {
	l  net.Listener
	to string
	wg sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	shut  bool // nobody gets through
	// at is what the store says over which the wire breaks, once; nil is nothing.
	at []byte
	// deaf: nothing gets through, and nobody is told.
	deaf bool
	// passed: what was said over that gets to the server, and its answer does not.
	passed bool
}

// wired returns a wire to the server, and what a database is opened with by way of it.
func wired(t *testing.T, place string) (*wire, store.Postgres) {
	t.Helper()
	c := server.For(t)
	direct, err := url.Parse(c.LoopbackURL(storetest.NameOf(place)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l, to: direct.Host, conns: map[net.Conn]bool{}}
	direct.Host = l.Addr().String()
	w.wg.Go(w.accept)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		w.cut()
		w.wg.Wait()
	})
	return w, store.Postgres{URL: direct.String(), Password: func() (string, error) { return c.Password, nil }}
}

func (w *wire) accept() {
	for {
		near, err := w.l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		w.mu.Lock()
		if err != nil || w.shut {
			_ = near.Close()
			if err == nil {
				_ = far.Close()
			}
			w.mu.Unlock()
			continue
		}
		w.conns[near], w.conns[far] = true, true
		w.mu.Unlock()
		w.wg.Go(func() { w.carry(near, far) })
		w.wg.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
	}
}

// carry takes to the server what the store says.
func (w *wire) carry(near, far net.Conn) {
	defer func() { _, _ = near.Close(), far.Close() }()
	buf := make([]byte, 1<<16)
	for {
		n, err := near.Read(buf)
		if err != nil {
			return
		}
		w.mu.Lock()
		breaks := w.at != nil && bytes.Contains(buf[:n], w.at)
		if breaks {
			w.at = nil
		}
		passed, deaf := w.passed, w.deaf
		w.mu.Unlock()
		if deaf {
			_, _ = io.Copy(io.Discard, near)
			return
		}
		if breaks {
			_ = near.Close() // the answer finds nobody
			if !passed {
				return
			}
		}
		if _, err := far.Write(buf[:n]); err != nil {
			return
		}
		if breaks { // whoever asks the server now is behind it
			_ = far.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, far)
			return
		}
	}
}

// committing is what a commit that was prepared is called on the wire.
func committing() string {
	sum := sha256.Sum256([]byte("commit"))
	return "stmt_" + hex.EncodeToString(sum[:24]) + "\x00"
}

// breaksAt has the wire break when the store says that, before or after the server hears
// it.
func (w *wire) breaksAt(said string, passed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.passed = []byte(said), passed
}

// cut breaks all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.Close()
		delete(w.conns, c)
	}
}

// shutTo has nobody get through, or everybody again.
func (w *wire) shutTo(all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shut = all
}

// deafTo has what is said get nowhere, or where it should.
func (w *wire) deafTo(all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf = all
}

func openWired(t *testing.T, p store.Postgres, o store.Options) *store.DB {
	t.Helper()
	db, err := store.OpenPostgres(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// Whoever changes something while the connection breaks over the commit is told what
// became of it, whichever it was.
func TestConnectionBreaksOverACommit(t *testing.T) {
	for _, passed := range []bool{true, false} {
		t.Run(fmt.Sprint("passed ", passed), func(t *testing.T) {
			w, p := wired(t, server.Database(t))
			db := openWired(t, p, store.Options{LockWait: 20 * time.Second})
			for i := range 5 {
				if err := keep(t.Context(), db, "before"); err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprint("over", i)
				w.breaksAt(committing(), passed)
				err := keep(t.Context(), db, name)
				if passed && err != nil {
					t.Errorf("it was kept, and the answer is %v", err)
				}
				if !passed {
					refused(t, err, store.ErrUnavailable, "nothing was kept")
				}
				kept(t, db, name, passed)
			}
		})
	}
}

// Where the server cannot be asked, that is said, and nothing else.
func TestOutcomeIsNotKnown(t *testing.T) {
	w, p := wired(t, server.Database(t))
	db := openWired(t, p, store.Options{})
	if err := keep(t.Context(), db, "before"); err != nil {
		t.Fatal(err)
	}
	store.Impatient(db, 200*time.Millisecond)
	w.breaksAt(committing(), true)
	w.shutTo(true)
	refused(t, keep(t.Context(), db, "over"), store.ErrUnknown, "whether the change was kept is not known")
	w.shutTo(false)
	await(t, func() bool { return keep(t.Context(), db, "after") == nil })
	kept(t, db, "over", true)
}

// One that was cut off while another had the database changes nothing any more: what it
// believes about it is out of date.
func TestTakenWhileCutOff(t *testing.T) {
	place := server.Database(t)
	w, p := wired(t, place)
	first := openWired(t, p, store.Options{})
	if err := keep(t.Context(), first, "first"); err != nil {
		t.Fatal(err)
	}
	w.shutTo(true)
	w.cut()
	second := openAt(t, place, store.Options{LockWait: 20 * time.Second})
	w.shutTo(false)
	store.Impatient(first, 2*time.Second)
	refused(t, keep(t.Context(), first, "beside"), store.ErrUnavailable, "another connection has the database")
	if err := errors.Join(keep(t.Context(), second, "second"), second.Close()); err != nil {
		t.Fatal(err)
	}
	wait := func() error { // until the server knows that the second one is gone
		var err error
		await(t, func() bool { err = keep(t.Context(), first, "after"); return !errors.Is(err, store.ErrUnavailable) })
		return err
	}
	for range 2 {
		refused(t, wait(), store.ErrOwned, "taken while the connection was broken: start this one again")
	}
	there := openAt(t, place, store.Options{})
	kept(t, there, "second", true)
	kept(t, there, "after", false)
}

// A server that says nothing more holds nobody up for ever who no longer waits.
func TestCancelledWhileTheServerIsAway(t *testing.T) {
	w, p := wired(t, server.Database(t))
	db := openWired(t, p, store.Options{})
	w.shutTo(true)
	w.cut()
	ctx, cancel := context.WithCancel(t.Context())
	looks := make(chan error)
	go func() {
		looks <- db.View(ctx, func(store.Tx) error { t.Error("it ran"); return nil })
	}()
	cancel()
	if err := <-looks; !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// A server that says nothing any more is given up, and found again.
func TestServerSaysNothing(t *testing.T) {
	w, p := wired(t, server.Database(t))
	db := openWired(t, p, store.Options{})
	if err := keep(t.Context(), db, "before"); err != nil {
		t.Fatal(err)
	}
	store.Impatient(db, time.Second)
	w.deafTo(true)
	refused(t, keep(t.Context(), db, "into the void"), store.ErrUnavailable, "the database server does not answer")
	_, _, _, err := db.KVGet(t.Context(), "space", "before")
	refused(t, err, store.ErrUnavailable, "the database server does not answer")
	w.deafTo(false)
	await(t, func() bool { return keep(t.Context(), db, "after") == nil })
	kept(t, db, "into the void", false)
	kept(t, db, "after", true)
}
