package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/hutch-run/hutch/protocol/mcp"
	"github.com/hutch-run/hutch/runtime/owner"
)

const (
	// grace is how long calls may go on after the first signal.
	grace = 5 * time.Second
	// linger is how long connections without a call may.
	linger = 500 * time.Millisecond
)

// Serve runs the app and answers on l, and on the socket of the owner that it is,
// until ctx ends; it then gives running calls a few seconds. It closes l, and
// leaves it to the caller to release o.
//
// Goroutines: two accept, one watches the folders, one has agents work, the servers have one
// for each connection. Serve returns when the first four are gone.
func (a *App) Serve(ctx context.Context, l net.Listener, o *owner.Owner) error {
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	face, people, info := mcp.New(a.waiting(), a.mcpOptions()), a.newAGUI(), o.Info()
	info.Addr, info.TLS = l.Addr().String(), a.certificate != nil
	srv := newServer(base, newHandler(a.cfg, faces{
		door: a.door(l.Addr()), mcp: face.Handler(), agents: people.web(), tracker: a.tracker, metrics: a.metrics.handler(), ready: a.Ready, counted: a.metrics.request, telemetry: a.telemetry,
	}, a.log), a.log)
	served := launch(func() error { return a.answer(srv, capped(l, a.cfg.Limits.Connections, a.metrics.refused.Inc)) })
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	watched := launch(func() error { a.Run(watching); return nil })
	controlled := launch(func() error { return o.Serve(base, a.control(face, people, info, nil), a.log) })
	idle := a.employ(watching, nil)

	var err error
	select {
	case err = <-served:
		served <- nil
	case err = <-watched:
		watched <- nil
	case <-ctx.Done():
	}
	stopWatching()
	err = errors.Join(err, a.shutdown(base, srv, face, people, idle))
	end()
	return errors.Join(err, srv.Close(), unlessClosed(<-served), <-watched, <-controlled)
}

// answer has a server answer on l, over TLS if there is a certificate.
func (a *App) answer(srv *http.Server, l net.Listener) error {
	if a.certificate == nil {
		return srv.Serve(l)
	}
	srv.TLSConfig = a.certificate.config()
	return srv.ServeTLS(l, "", "")
}

func unlessClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// launch runs f in a goroutine and hands over what it returns. A panic becomes
// an error: it ends f's part of the program in order, and not the program.
func launch(f func() error) chan error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if x := recover(); x != nil {
				done <- fmt.Errorf("hutch broke: %v\n%s", x, debug.Stack())
			}
		}()
		done <- f()
	}()
	return done
}

// shutdown closes the listener, lets calls finish that run, and cuts off what
// is left when the grace is over. Streams that clients keep open would hold
// http.Server.Shutdown until its deadline, so the face ends its sessions at the
// same time; and once no call is running, a connection that never sent a
// request, for which it waits too, is not worth the rest of the grace.
//
// What agents of the tracker do may take its part of the grace, until idle is closed; then
// runs end, and then the tracker.
func (a *App) shutdown(base context.Context, srv *http.Server, face *mcp.Server, people *aguiFace, idle <-chan struct{}) error {
	a.log.Info("stopping", "grace", grace)
	ctx, cancel := context.WithTimeout(base, grace)
	defer cancel()
	closed := launch(func() error { return srv.Shutdown(ctx) })
	ran := launch(func() error { awaitClosed(ctx, idle); return people.shutdown(ctx) })
	left := launch(func() error { awaitClosed(ctx, idle); return a.tracker.Close(ctx) })
	err := errors.Join(face.Shutdown(ctx), <-ran, <-left)
	if errors.Is(err, context.DeadlineExceeded) {
		a.log.Warn("calls were cut off", "after", grace)
		err = nil
	}
	select {
	case failed := <-closed:
		return errors.Join(err, unlessCut(failed))
	case <-time.After(linger):
	}
	cancel()
	return errors.Join(err, unlessCut(<-closed))
}

// awaitClosed returns when done is closed or ctx ends.
func awaitClosed(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// unlessCut drops the error of a shutdown that ran out of time: what was left
// is closed with the server.
func unlessCut(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
