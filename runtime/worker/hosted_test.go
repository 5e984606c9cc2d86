package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

func TestGatedOperation(t *testing.T) {
	answer := func(code abi.Code, body string) abi.Host {
		return func(_ context.Context, r abi.Request) abi.Response {
			return abi.Response{Code: code, Body: fmt.Appendf(nil, "%s %s %s", r.Op, r.Body, body)}
		}
	}
	for _, test := range []struct {
		name string
		host abi.Host
		want string
	}{
		{"served", answer(abi.OK, "yes"), `ok kv_get {"key":"a"} yes`},
		{"refused", answer(abi.Denied, "no"), `denied kv_get {"key":"a"} no`},
		{"panics", func(context.Context, abi.Request) abi.Response { panic("secret") },
			`unavailable {"error":{"code":"unavailable","message":"the operation failed"}}`},
		{"answers too much", func(context.Context, abi.Request) abi.Response { return abi.Response{Body: make([]byte, maxGated+1)} },
			`limit {"error":{"code":"limit","message":"the result has 16777217 bytes, at most 16777216"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newUsual(t, Options{})
				in := tool("ask", `{}`)
				in.Host = test.host
				body, usage, err := f.Call(t.Context(), numbered(1), in)
				wantAnswer(t, string(body), err, test.want)
				if usage.HostCalls != 1 {
					t.Errorf("usage %+v, want one host call", usage)
				}
			})
		})
	}
}

// E07: the one that is too many is not executed.
func TestE07_HostCallBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, Options{}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
			return &fakeGuest{w, behaviour{"flood": func(ctx context.Context, _ *fakeWorker, in abi.Invocation) ([]byte, error) {
				var last abi.Response
				for range 6 {
					last = in.Host(ctx, abi.Request{Op: abi.OpKVGet, Body: []byte("{}")})
				}
				return last.Body, nil
			}}}, nil
		})
		in := tool("flood", `{}`)
		in.Limits.HostCalls = 5
		var served int
		in.Host = func(context.Context, abi.Request) abi.Response { served++; return abi.Response{Body: []byte("{}")} }
		body, _, err := f.Call(t.Context(), numbered(1), in)
		if err != nil || !strings.Contains(string(body), "has used up its host calls") || served != 5 {
			t.Errorf("got %q, %v after %d operations, want a refusal after 5", body, err, served)
		}
	})
}

// What a worker's own side refuses does not travel.
func TestRequestsRefusedInTheWorker(t *testing.T) {
	for _, test := range []struct {
		name    string
		request abi.Request
		want    string
	}{
		{"unknown operation", abi.Request{Op: "launch", Body: []byte("{}")}, `unknown operation`},
		{"too large", abi.Request{Op: abi.OpKVSet, Body: make([]byte, maxGated+1)}, "at most 16777216"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(t, Options{}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
					return &fakeGuest{w, behaviour{"ask": func(ctx context.Context, _ *fakeWorker, in abi.Invocation) ([]byte, error) {
						return in.Host(ctx, test.request).Body, nil
					}}}, nil
				})
				in := tool("ask", `{}`)
				in.Host = func(context.Context, abi.Request) abi.Response { t.Error("served"); return abi.Response{} }
				body, _, err := f.Call(t.Context(), numbered(1), in)
				if err != nil || !strings.Contains(string(body), test.want) {
					t.Errorf("got %q, %v", body, err)
				}
			})
		})
	}
}

// E26: an operation's context ends with its call, and its answer is dropped.
func TestE26_OperationEndsWithItsCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{})
		in := tool("ask", `{}`)
		in.Limits.Wall = time.Second
		ended := make(chan struct{})
		in.Host = func(ctx context.Context, _ abi.Request) abi.Response {
			defer close(ended)
			<-ctx.Done()
			time.Sleep(time.Millisecond) // slow to notice
			return abi.Response{Body: []byte("{}")}
		}
		_, _, err := f.Call(t.Context(), numbered(1), in)
		wantClass(t, err, abi.ClassTimeout, "1s")
		<-ended
		time.Sleep(time.Second)
		// The guest was told, ended by itself and cost nobody the worker.
		if s := f.Stats(); s.Workers != 1 || s.Late != 1 {
			t.Errorf("stats %+v, want the worker kept", s)
		}
	})
}

// An operation that ignores its context holds its place: no more than the limit
// run at once, whoever has asked for them and left.
func TestOperationsAtOnceAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{Calls: 1})
		release := make(chan struct{})
		deaf := tool("ask", `{}`)
		deaf.Limits.Wall = time.Second
		deaf.Host = func(context.Context, abi.Request) abi.Response { <-release; return abi.Response{Body: []byte("{}")} }
		_, _, err := f.Call(t.Context(), numbered(1), deaf)
		wantClass(t, err, abi.ClassTimeout, "1s")

		next := tool("ask", `{}`)
		next.Limits.Wall = time.Second
		var served int
		next.Host = func(context.Context, abi.Request) abi.Response { served++; return abi.Response{Body: []byte("{}")} }
		_, _, err = f.Call(t.Context(), numbered(1), next)
		wantClass(t, err, abi.ClassTimeout, "1s")
		if served != 0 {
			t.Error("two operations at once, want one")
		}
		close(release)
		body, _, err := f.Call(t.Context(), numbered(1), next)
		wantAnswer(t, string(body), err, "ok {}")
	})
}
