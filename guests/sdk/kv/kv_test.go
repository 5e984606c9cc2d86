package kv_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/kv"
	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/protocol/abi"
)

// within runs do as a tool of a module that asks for storage, and fails on its error.
func within(t *testing.T, store *sdktest.KV, asked *sdk.KV, do func(c *sdk.Call) error) {
	t.Helper()
	m := &sdk.Module{Requests: sdk.Requests{KV: asked}, Tools: []sdk.Tool{
		sdk.Define(sdk.Spec{Name: "do", Description: "Does."}, func(c *sdk.Call, _ struct{}) (string, error) { return "", do(c) }),
	}}
	if got := (sdktest.Host{KV: store}).Call(t, m, "do", nil); got.IsError {
		t.Error(got.Text)
	}
}

type thing struct {
	Name string
	N    int64
}

func TestValues(t *testing.T) {
	var store sdktest.KV
	ask := &sdk.KV{Reason: "Tests."}
	within(t, &store, ask, func(c *sdk.Call) error {
		got, found, err := kv.Get[thing](c, "a/b")
		if found || err != nil || got != (thing{}) {
			t.Errorf("got %+v, %v, %v before it was set", got, found, err)
		}
		return kv.Set(c, "a/b", thing{"<x>", 1 << 60}, 0)
	})
	within(t, &store, ask, func(c *sdk.Call) error {
		if got, found, err := kv.Get[thing](c, "a/b"); !found || err != nil || got != (thing{"<x>", 1 << 60}) {
			t.Errorf("got %+v, %v, %v", got, found, err)
		}
		if _, _, err := kv.Get[[]int](c, "a/b"); err == nil || !strings.HasPrefix(err.Error(), "the value of a/b is of another form: ") {
			t.Errorf("of another type: %v", err)
		}
		for _, want := range []bool{true, false} {
			if deleted, err := kv.Delete(c, "a/b"); deleted != want || err != nil {
				t.Errorf("deleted %v, %v, want %v", deleted, err, want)
			}
		}
		return nil
	})
	if keys := store.Keys(); len(keys) > 0 {
		t.Errorf("left are %q", keys)
	}
}

func TestBytes(t *testing.T) {
	within(t, nil, &sdk.KV{Reason: "Tests."}, func(c *sdk.Call) error {
		if _, found, err := kv.GetBytes(c, "a"); found || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
		want := []byte{0, 0xff, 0xfe}
		if err := kv.SetBytes(c, "a", want, time.Minute); err != nil {
			return err
		}
		got, found, err := kv.GetBytes(c, "a")
		if !bytes.Equal(got, want) || !found {
			t.Errorf("got %v, %v", got, found)
		}
		if _, _, err := kv.Get[string](c, "a"); !errors.Is(err, sdk.ErrInvalid) {
			t.Errorf("bytes as JSON: %v", err)
		}
		return err
	})
}

// A value ends with its time, in whole seconds, or with the module's own.
func TestTTL(t *testing.T) {
	for _, c := range []struct {
		ttl     time.Duration
		ask     string
		lives   time.Duration
		forever bool
	}{
		{ttl: 0, forever: true},
		{ttl: 1, lives: time.Second},
		{ttl: time.Hour, lives: time.Hour},
		{ttl: time.Hour, ask: "1m", lives: time.Minute},
		{ttl: 0, ask: "1m", lives: time.Minute},
	} {
		var store sdktest.KV
		within(t, &store, &sdk.KV{TTL: c.ask, Reason: "Tests."}, func(call *sdk.Call) error {
			if err := kv.Set(call, "a", 1, c.ttl); err != nil {
				return err
			}
			e, err := kv.Read[int](call, "a")
			if e.Expires.IsZero() != c.forever || e.Value != 1 {
				t.Errorf("%+v: got %+v", c, e)
			}
			return err
		})
		store.Pass(c.lives + time.Second)
		if _, there := store.Value("a"); there != c.forever {
			t.Errorf("%+v: there afterwards: %v", c, there)
		}
	}
}

func TestReplace(t *testing.T) {
	within(t, nil, &sdk.KV{Reason: "Tests."}, func(c *sdk.Call) error {
		if ok, err := kv.Replace(c, "a", 1, 0, 0); !ok || err != nil {
			t.Errorf("a first value: %v, %v", ok, err)
		}
		e, err := kv.Read[int](c, "a")
		if err != nil {
			return err
		}
		for _, want := range []bool{true, false} {
			if ok, err := kv.Replace(c, "a", e.Value+1, e.Version, 0); ok != want || err != nil {
				t.Errorf("replaced %v, %v, want %v", ok, err, want)
			}
		}
		if ok, err := kv.Replace(c, "a", 9, 0, 0); ok || err != nil {
			t.Errorf("as if there was none: %v, %v", ok, err)
		}
		got, _, err := kv.Get[int](c, "a")
		if got != 2 {
			t.Errorf("got %d, want 2", got)
		}
		return err
	})
}

// Keys come a part at a time.
func TestKeys(t *testing.T) {
	var store sdktest.KV
	var want []string
	for i := range 2*abi.KVMaxKeys + 1 {
		key := fmt.Sprintf("n/%05d", i)
		store.Put(key, "1")
		want = append(want, key)
	}
	store.Put("m", "1")
	within(t, &store, &sdk.KV{Reason: "Tests."}, func(c *sdk.Call) error {
		got, err := kv.Keys(c, "n/")
		if !slices.Equal(got, want) {
			t.Errorf("got %d keys, want %d", len(got), len(want))
		}
		return err
	})
}

func TestRefusals(t *testing.T) {
	small := &sdk.KV{Max: "1KiB", Reason: "Tests."}
	for want, do := range map[error]func(*sdk.Call) error{
		sdk.ErrInvalid: func(c *sdk.Call) error { return kv.Set(c, "../a", 1, 0) },
		sdk.ErrLimit:   func(c *sdk.Call) error { return kv.Set(c, "a", strings.Repeat("x", 1000), 0) },
	} {
		within(t, nil, small, func(c *sdk.Call) error {
			if err := do(c); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			return nil
		})
	}
	within(t, nil, nil, func(c *sdk.Call) error {
		_, err1 := kv.Delete(c, "a")
		_, err2 := kv.Keys(c, "")
		_, _, err3 := kv.GetBytes(c, "a")
		_, err4 := kv.Replace(c, "a", 1, 0, 0)
		for _, err := range []error{err1, err2, err3, err4} {
			if !errors.Is(err, sdk.ErrDenied) {
				t.Errorf("got %v without a request", err)
			}
		}
		return nil
	})
	within(t, nil, small, func(c *sdk.Call) error {
		if err := kv.Set(c, "a", func() {}, 0); err == nil || err.Error() != "the value of a: json: unsupported type: func()" {
			t.Errorf("got %v", err)
		}
		return nil
	})
}
