package sdk

import (
	"errors"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
)

func TestAsk(t *testing.T) {
	h := &listener{answer: abi.Response{Body: []byte(`{"found":true,"value":"v"}`)}}
	var out abi.KVValue
	if err := (&Call{host: h}).Ask(Gated{Op: abi.OpKVGet}, abi.KVGet{Key: "<a>"}, &out); err != nil || out.Value != "v" {
		t.Errorf("got %+v, %v", out, err)
	}
	if want := `kv_get {"key":"<a>"}`; h.lines[0] != want {
		t.Errorf("asked %s, want %s", h.lines[0], want)
	}
}

// Each refusal is one of the sentinels and no other, and says something.
func TestRefusals(t *testing.T) {
	sentinels := []error{ErrDenied, ErrInvalid, ErrLimit, ErrUnavailable, ErrCancelled}
	for _, c := range []struct {
		answer abi.Response
		is     error
		text   string
	}{
		{abi.Refuse(abi.Denied, "kv_get: not granted"), ErrDenied, "kv_get: not granted"},
		{abi.Refuse(abi.Invalid, "kv_get: wrong key"), ErrInvalid, "kv_get: wrong key"},
		{abi.Refuse(abi.Limit, "kv_get: too much"), ErrLimit, "kv_get: too much"},
		{abi.Refuse(abi.Unavailable, "kv_get: later"), ErrUnavailable, "kv_get: later"},
		{abi.Refuse(abi.Cancelled, "kv_get: over"), ErrCancelled, "kv_get: over"},
		{abi.Response{Code: 77}, ErrUnavailable, "kv_get: unknown, without a reason"},
		{abi.Response{Code: abi.Denied, Body: []byte(`no json`)}, ErrDenied, "kv_get: denied, without a reason"},
		{abi.Response{Body: []byte(`{"found":1}`)}, ErrUnavailable, "kv_get: the host gave an answer that cannot be read"},
	} {
		err := (&Call{host: &listener{answer: c.answer}}).Ask(Gated{Op: abi.OpKVGet}, abi.KVGet{}, new(abi.KVValue))
		for _, s := range sentinels {
			if errors.Is(err, s) != errors.Is(s, c.is) {
				t.Errorf("%v: is %v = %v", err, s, errors.Is(err, s))
			}
		}
		if refused, ok := errors.AsType[*Refusal](err); !ok || refused.Error() != c.text || refused.Op != abi.OpKVGet {
			t.Errorf("got %+v, want %s", refused, c.text)
		}
	}
}

func TestAskWhatIsNoJSON(t *testing.T) {
	h := &listener{}
	if err := (&Call{host: h}).Ask(Gated{Op: abi.OpKVSet}, func() {}, nil); err == nil || h.lines != nil {
		t.Errorf("got %v, asked %q", err, h.lines)
	}
}
